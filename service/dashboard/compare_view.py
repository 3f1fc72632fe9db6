"""Two plans side by side: the groups that hold the same ops stand in one row."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from kernel_gen.runtime.plan import Plan
from kernel_gen.schedule.schedule import Schedule
from service.dashboard.plan_times import total
from service.dashboard.plan_view import GroupRow, PlanView

_SHOWN = 4  # decisions that are named
_SAME = (("the same kernel",), ("the same part of the framework",))


@dataclass(frozen=True, slots=True)
class Pair:
    """Groups of both plans that share ops. `said` is what changed between them, in words; `times`
    counts equal layers that changed alike, whose times are added up."""

    left: tuple[GroupRow, ...]
    right: tuple[GroupRow, ...]
    said: tuple[str, ...]
    times: int = 1

    @property
    def left_us(self) -> float | None:
        return total([row.time.after_us for row in self.left] * self.times)

    @property
    def right_us(self) -> float | None:
        return total([row.time.after_us for row in self.right] * self.times)

    @property
    def kind(self) -> object:
        """Equal for pairs that are the same work done in the same two ways."""
        return tuple(tuple(row.kind for row in side) for side in (self.left, self.right))

    @property
    def difference_us(self) -> float:
        """Right minus left, all of it where the ops are in one plan only; 0 if not known."""
        left = self.left_us if self.left else 0.0
        right = self.right_us if self.right else 0.0
        return 0.0 if left is None or right is None else right - left


@dataclass(frozen=True, slots=True)
class Comparison:
    """`pairs` with the largest difference first; `warnings` say what makes times incomparable."""

    left: PlanView
    right: PlanView
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]

    @property
    def longest_us(self) -> float:
        times = [t for pair in self.pairs for t in (pair.left_us, pair.right_us) if t]
        return max(times, default=1.0)


def compare(left: PlanView, right: PlanView) -> Comparison:
    """Both plans, row by row."""
    same = left.plan.program == right.plan.program
    keys = [_by_node, _by_node] if same else [_by_ops, _by_ops]
    found = _together(keys[0](left), keys[1](right))
    pairs = [
        Pair(tuple(ours), tuple(theirs), _said(ours, theirs))
        for ours, theirs in found
        if any(row.code != "constant" for row in (*ours, *theirs))
    ]
    merged = sorted(_merged(pairs), key=lambda pair: -abs(pair.difference_us))
    return Comparison(left, right, tuple(merged), _warnings(left.plan, right.plan, same))


def _merged(pairs: Iterable[Pair]) -> list[Pair]:
    """Equal pairs as one."""
    alike: dict[object, list[Pair]] = {}
    for pair in pairs:
        alike.setdefault(pair.kind, []).append(pair)
    return [dataclasses.replace(found[0], times=len(found)) for found in alike.values()]


Keyed = Sequence[tuple[GroupRow, frozenset[Hashable]]]


def _by_node(view: PlanView) -> Keyed:
    """Groups of one program meet in its nodes."""
    return [(row, frozenset(view.plan.cover.groups[row.number].nodes)) for row in view.rows]


def _by_ops(view: PlanView) -> Keyed:
    """Groups of different programs meet where they hold the same ops, the first with the first."""
    seen: dict[tuple[str, ...], int] = {}
    found: list[tuple[GroupRow, frozenset[Hashable]]] = []
    for row in view.rows:
        seen[row.ops] = seen.get(row.ops, 0) + 1
        found.append((row, frozenset({(row.ops, seen[row.ops])})))
    return found


def _together(left: Keyed, right: Keyed) -> list[tuple[list[GroupRow], list[GroupRow]]]:
    """Connected parts: rows of either side that share a key, directly or through others."""
    parts: list[tuple[set[Hashable], list[GroupRow], list[GroupRow]]] = []
    for side, keyed in ((1, left), (2, right)):
        for row, keys in keyed:
            meeting = [part for part in parts if part[0] & keys]
            joined: tuple[set[Hashable], list[GroupRow], list[GroupRow]] = (set(keys), [], [])
            for part in meeting:
                joined[0].update(part[0])
                joined[1].extend(part[1])
                joined[2].extend(part[2])
                parts.remove(part)
            (joined[1] if side == 1 else joined[2]).append(row)
            parts.append(joined)
    return [(ours, theirs) for _, ours, theirs in parts]


def _said(ours: Sequence[GroupRow], theirs: Sequence[GroupRow]) -> tuple[str, ...]:
    if not ours or not theirs:
        return ("only in the right plan" if theirs else "only in the left plan",)
    if len(ours) != len(theirs):
        return (f"{_count(ours)} became {_count(theirs)}",)
    if len(ours) > 1:
        return ("cut differently",)
    return tuple(_changes(ours[0], theirs[0])) or _SAME[ours[0].kernel is None]


def _count(rows: Sequence[GroupRow]) -> str:
    return f"{len(rows)} group{'s' if len(rows) != 1 else ''}"


def _changes(ours: GroupRow, theirs: GroupRow) -> Iterable[str]:
    if ours.ops != theirs.ops:
        yield "other ops"
    if ours.runs_as != theirs.runs_as:
        yield f"{ours.runs_as} became {theirs.runs_as}"
    elif ours.kernel and theirs.kernel:
        changed = _decisions(ours.kernel.schedule, theirs.kernel.schedule)
        yield from changed[:_SHOWN]
        if len(changed) > _SHOWN:
            yield f"{len(changed) - _SHOWN} more decisions"


def _decisions(before: Schedule, after: Schedule) -> list[str]:
    """Arguments of decisions that differ: "tile rows 6 → 8"."""
    old, new = _arguments(before), _arguments(after)
    names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    return [f"{name} {old.get(name, '–')} → {new.get(name, '–')}" for name in names]


def _arguments(schedule: Schedule) -> dict[str, object]:
    """Arguments by the decision's kind and their own name; `parameter` and `value` are a pair."""
    found: dict[str, object] = {}
    for decision in schedule.decisions:
        args = dict(decision.args)
        if set(args) == {"parameter", "value"}:
            args = {str(args["parameter"]): args["value"]}
        found |= {f"{decision.kind} {name}": value for name, value in args.items()}
    return found


def _warnings(left: Plan, right: Plan, same: bool) -> tuple[str, ...]:
    found = []
    if left.target.key != right.target.key:
        found.append(
            f"The plans are for different targets ({left.target.key}, {right.target.key}): "
            "their times do not compare."
        )
    if left.key.options != right.key.options:
        found.append("The plans were made with other numerics or other rules.")
    if not same:
        found.append("The plans cut different programs: groups with the same ops are set in a row.")
    return tuple(found)
