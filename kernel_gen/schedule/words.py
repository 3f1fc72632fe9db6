"""Points of a space as decisions and back: what templates share when they write schedules."""

from __future__ import annotations

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.graph import attrs
from kernel_gen.schedule.schedule import Choice, Decision, Point, Schedule

_KINDS = {
    "axis": "vectorise",
    "block": "tile",
    "unroll": "unroll",
    "stream": "stream-store",
    "threads": "threads",
}
"""Parameter name -> decision kind; other parameters are decisions of their own name."""


def decisions(point: Point) -> tuple[Decision, ...]:
    """One decision per parameter, in the order of the point."""
    return tuple(
        Decision(_KINDS.get(name, name), attrs(parameter=name, value=value))
        for name, value in point.items()
    )


def choice(schedule: Schedule, name: str) -> Choice:
    """The value chosen for a parameter; raises InvalidGraph if the schedule has none."""
    for decision in schedule.decisions:
        args = dict(decision.args)
        if args.get("parameter") == name:
            value = args["value"]
            if isinstance(value, int | str):
                return value
    raise InvalidGraph(f"schedule of template {schedule.template!r} decides no {name!r}")


def decided(schedule: Schedule, kind: str, key: str) -> object:
    """Argument `key` of the one decision of a kind, None if it has no such argument.

    Raises InvalidGraph unless there is exactly one decision of that kind.
    """
    found = schedule.find(kind)
    if len(found) != 1:
        raise InvalidGraph(f"schedule of {schedule.template}: {len(found)} decisions {kind!r}")
    return dict(found[0].args).get(key)


def number(schedule: Schedule, kind: str, key: str) -> int:
    """As `decided`, for a count; raises InvalidGraph if it is none."""
    value = decided(schedule, kind, key)
    if not isinstance(value, int) or value < 0:
        raise InvalidGraph(f"schedule: {kind} {key} is {value!r}, expected a count")
    return value


def word(schedule: Schedule, kind: str, key: str) -> str:
    """As `decided`, for a word; raises InvalidGraph if it is none."""
    value = decided(schedule, kind, key)
    if not isinstance(value, str):
        raise InvalidGraph(f"schedule: {kind} {key} is {value!r}, expected a word")
    return value
