"""What the decisions of a schedule say to the model of nests without products."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.ir.graph import Attr
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule

OUTER, UNVECTORISED = "rows", ("scalar", "")
"""Vector axes by what they are: the most contiguous one that is not reduced; none."""

_ONE = (1, "one")
_ENOUGH = 8  # sums that hide the latency of an addition (four cycles, two a cycle)


@dataclass(frozen=True, slots=True)
class Decided:
    """`threads` at work; whether variances take their mean and the deviations in `one_pass`; the
    buffers that are `streamed` past the caches; sums that are taken side by side; the axis that
    vectors run `along`, by name or by what it is, None where no decision says it; whether sums of
    columns are made while rows are read; whether all threads work on one row at a time."""

    threads: int
    one_pass: bool = False
    streamed: frozenset[int] = frozenset()
    sums: int = _ENOUGH
    along: str | None = None
    crosses: bool = True
    splits_rows: bool = False


def decided(nest: LoopNest, schedule: Schedule | None, target: Target) -> Decided:
    """All cores unless a decision says one; nothing streamed and sums enough where none is said."""
    if schedule is None:
        return Decided(target.cores)
    said = [*schedule.find("threads"), *schedule.find("parallel")]
    values = [value for d in said for key, value in d.args if key in ("threads", "value", "count")]
    return Decided(
        threads=1 if any(value in _ONE for value in values) else target.cores,
        one_pass=_value(schedule, "passes") == 1,
        streamed=_streamed(nest, _value(schedule, "stream-store")),
        sums=_sums(schedule),
        along=_along(schedule),
        crosses=_value(schedule, "cross") != 0,
        splits_rows="split" in values,
    )


def _value(schedule: Schedule, kind: str) -> Attr | None:
    """The value of a decision that is one choice; None where there is no such decision."""
    found = schedule.find(kind)
    return dict(found[0].args).get("value") if found else None


def _streamed(nest: LoopNest, choice: Attr | None) -> frozenset[int]:
    """0 none of the outputs, 1 all, 2 + k the k-th."""
    outputs = sorted({store.buffer for store in nest.stores})
    if not isinstance(choice, int) or choice < 1:
        return frozenset()
    return frozenset(outputs if choice == 1 else outputs[choice - 2 : choice - 1])


def _along(schedule: Schedule) -> str | None:
    value = _value(schedule, "vectorise")
    return value if isinstance(value, str) else None


def _sums(schedule: Schedule) -> int:
    """Rows by vectors of a row that templates of reductions take side by side."""
    rows, vectors = _value(schedule, "rows"), _value(schedule, "unroll")
    if not isinstance(rows, int) or not isinstance(vectors, int):
        return _ENOUGH
    return min(rows * vectors, _ENOUGH)
