"""How many threads the decisions of a schedule keep busy."""

from __future__ import annotations

from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule

_ONE = (1, "one")


def threads_of(schedule: Schedule | None, target: Target) -> int:
    """Threads at work: all cores, unless a decision says one."""
    if schedule is None:
        return target.cores
    said = [*schedule.find("threads"), *schedule.find("parallel")]
    values = [value for d in said for key, value in d.args if key in ("threads", "value", "count")]
    return 1 if any(value in _ONE for value in values) else target.cores
