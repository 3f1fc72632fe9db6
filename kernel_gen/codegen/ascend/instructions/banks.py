"""Which buffers of UB start half a set of bank groups after the others.

UB has 16 bank groups, 32 B of each in turn, and an instruction's repeat takes 256 B: eight groups.
Two operands that start in the same half of a set of 512 B meet in every repeat, which then takes a
cycle more; in different halves they never do, as long as their rows are whole sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernel_gen.codegen.ascend.instructions.steps import Lanes, Step, Value

SET_BYTES = 512
HALF_BYTES = 256
_BOTH_READ, _READ_AND_WRITTEN = 1.0, 0.8  # cycles of a repeat, as measured on the chip
_TILE, _OTHER = 16.0, 1.0  # repeats of a whole tile against those of a row

Meetings = dict[tuple[str, str], float]


def second_half(steps: Iterable[Step], names: Mapping[int, str]) -> frozenset[str]:
    """Rooms (`names` of values) that start in the second half, so that few operands meet."""
    meetings = _meetings(steps, names)
    rooms = sorted({room for pair in meetings for room in pair})
    weights = {r: sum(w for pair, w in meetings.items() if r in pair) for r in rooms}
    chosen: dict[str, bool] = {}
    for room in sorted(rooms, key=lambda r: (-weights[r], r)):
        chosen[room] = _better(room, chosen, meetings)
    for room in rooms:
        chosen[room] = _better(room, chosen, meetings)
    return frozenset(room for room, second in chosen.items() if second)


def _meetings(steps: Iterable[Step], names: Mapping[int, str]) -> Meetings:
    """Pairs of rooms that one instruction reads, or reads and writes."""
    found: Meetings = {}
    for step in steps:
        if not step.vector:
            continue
        tile = any(v.lanes is Lanes.FULL for v in (*step.reads, *step.writes))
        repeats = _TILE if tile else _OTHER
        sources = [v for v in step.reads if _counts(v) and v is not step.onto]
        reads = sorted({names[v.number] for v in sources})
        writes = {names[v.number] for v in step.writes if _counts(v)}
        pairs = [(a, b, _BOTH_READ) for i, a in enumerate(reads) for b in reads[i + 1 :]]
        pairs += [(a, b, _READ_AND_WRITTEN) for a in writes for b in reads if a != b]
        for a, b, cycles in pairs:
            key = (min(a, b), max(a, b))
            found[key] = found.get(key, 0.0) + cycles * repeats
    return found


def _counts(v: Value) -> bool:
    """Whether a value is read in every repeat."""
    return v.ctype != "bits" and v.lanes is not Lanes.ONE


def _better(room: str, chosen: Mapping[str, bool], meetings: Meetings) -> bool:
    """The half of a room in which it meets less of what has been placed."""
    cost = {False: 0.0, True: 0.0}
    for pair, weight in meetings.items():
        if room in pair:
            other = pair[0] if pair[1] == room else pair[1]
            if other in chosen and other != room:
                cost[chosen[other]] += weight
    return cost[True] < cost[False]
