"""Buffers for values by lifetime, barriers between dependent vector instructions, and the text.

Two values share a buffer if they have the same kind of lanes and width, and one is read for the
last time before the other is written. Queues give each load and store its own double buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_gen.codegen.ascend.instructions.banks import second_half
from kernel_gen.codegen.ascend.instructions.printer import Printer
from kernel_gen.codegen.ascend.instructions.steps import (
    SIZES,
    SPACED,
    Body,
    Lanes,
    Loop,
    Step,
    Value,
    steps_of,
)
from kernel_gen.errors import InternalError

MOST_QUEUES = 6  # of each kind: event ids 6 and 7 of a pair of pipes are reserved
MOST_BUFFERS = 64  # of all kinds that a kernel has at a time


@dataclass(frozen=True, slots=True)
class Room:
    """One buffer in UB, or one queue of `depth` buffers."""

    name: str
    lanes: Lanes
    size: int  # bytes per lane; 0: one bit per lane
    depth: int = 1

    @property
    def is_for_scalars(self) -> bool:
        """Whether it holds what the scalar unit reads, which no vector instruction may touch."""
        return self.name.startswith("indices")


GAP = Room("bufferGap", Lanes.BLOCK, 1)
"""Half a set of bank groups, before the rooms that start in the second half of one."""


@dataclass(slots=True)
class Layout:
    """Rooms of a phase and the lines of its body."""

    buffers: list[Room] = field(default_factory=list)
    ins: list[Room] = field(default_factory=list)
    outs: list[Room] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    late: frozenset[str] = frozenset()  # rooms in the second half of a set of bank groups

    @property
    def buffer_count(self) -> int:
        """Buffers of all rooms; a queue has as many as it is deep."""
        return sum(room.depth for room in self.rooms())

    def rooms(self) -> list[Room]:
        """All rooms in the order in which they lie in UB."""
        rooms = [*self.buffers, *self.ins, *self.outs]
        first = [r for r in rooms if r.name not in self.late]
        second = [r for r in rooms if r.name in self.late]
        return [*first, GAP, *second] if second else first


def lay_out(body: Body, depth: int, indent: str) -> Layout:
    """Assigns buffers and prints `body`."""
    ends = _ends(body)
    layout = Layout()
    names = _assign(body, ends, layout, depth)
    layout.late = second_half(steps_of(body), names)
    printer = Printer(names, ends)
    printer.block(body, indent)
    layout.lines = printer.lines
    return layout


# ---- lifetimes -----------------------------------------------------------------------------------


def _numbered(body: Body, start: int = 0) -> Iterator[tuple[int, Step | Loop, int]]:
    """Items in order with their position; loops come with the position after their last step."""
    position = start
    for item in body:
        if isinstance(item, Loop):
            inner = list(_numbered(item.body, position))
            end = inner[-1][2] if inner else position
            yield position, item, end
            yield from inner
            position = end
        else:
            yield position, item, position + 1
            position += 1


def _ends(body: Body) -> dict[int, int]:
    """Position of each value's last use; a value from outside a loop lives to the loop's end."""
    born: dict[int, int] = {}
    ends: dict[int, int] = {}
    loops: list[tuple[int, int]] = []
    for position, item, end in _numbered(body):
        if isinstance(item, Loop):
            loops.append((position, end))
            continue
        for value in (*item.reads, *item.writes):
            first = born.setdefault(value.number, position)
            last = position
            for low, high in loops:
                if first < low and low <= position < high:
                    last = max(last, high - 1)
            ends[value.number] = max(ends.get(value.number, 0), last)
    return ends


def _assign(body: Body, ends: dict[int, int], layout: Layout, depth: int) -> dict[int, str]:
    """Buffers for values in the order in which they are written; gives each value's room."""
    rooms = _Rooms(ends, layout, depth)
    scratch: list[tuple[int, Value]] = []
    for position, item, _ in _numbered(body):
        if isinstance(item, Loop):
            continue
        rooms.release(position)
        for value in item.writes:
            if value.number in rooms.names:
                continue
            if value.lanes is Lanes.HALF:
                scratch.append((position, value))
            else:
                rooms.give(value, position, item)
    for position, value in scratch:
        rooms.names[value.number] = _scratch(position, value, layout, rooms.taken)
    return rooms.names


class _Rooms:
    """Who lies in which room from when to when: `names` by value, `taken` by room."""

    def __init__(self, ends: dict[int, int], layout: Layout, depth: int) -> None:
        self._ends, self._layout, self._depth = ends, layout, depth
        self._free: dict[_Kind, list[str]] = {}
        self._busy: list[tuple[int, _Kind, str]] = []
        self.names: dict[int, str] = {}
        self.taken: dict[str, list[tuple[int, int]]] = {}

    def release(self, position: int) -> None:
        """Rooms whose values are read for the last time before `position` are free again."""
        for entry in [b for b in self._busy if b[0] < position]:
            self._busy.remove(entry)
            self._free.setdefault(entry[1], []).append(entry[2])

    def give(self, value: Value, position: int, step: Step) -> None:
        """A room for what `step` writes."""
        if value.home in ("in", "out"):
            name = _queue(self._layout, value, self._depth)
        else:
            name = self._buffer(value, position, step)
        self.names[value.number] = name
        self.taken.setdefault(name, []).append((position, self._ends[value.number]))

    def _buffer(self, value: Value, position: int, step: Step) -> str:
        """The buffer of an operand that dies in the step, a free one, or a new one."""
        kind = _kind(value)
        dying = _overwritten(step, self._ends, self.names, kind, position)
        if dying is not None:
            name = self.names[dying.number]
            self._busy = [b for b in self._busy if b[2] != name]
        elif self._free.get(kind):
            name = self._free[kind].pop()
        else:
            prefix = "indices" if value.home == "scalar" else "buffer"
            name = f"{prefix}{len(self._layout.buffers)}"
            self._layout.buffers.append(Room(name, value.lanes, kind[1]))
        self._busy.append((self._ends[value.number], kind, name))
        return name


_Kind = tuple[Lanes, int, str]
"""What makes two values fit one buffer: lanes, bytes per lane, and which unit reads them."""


def _kind(value: Value) -> _Kind:
    return value.lanes, SIZES[value.ctype], value.home


def _scratch(
    position: int, value: Value, layout: Layout, taken: dict[str, list[tuple[int, int]]]
) -> str:
    """The room of a fold's scratch, which lives for one step: that of a tile that nothing reads
    afterwards, be it the folded one, or a room of its own."""
    size = SIZES[value.ctype]
    for room in layout.buffers:
        held = [low for low, high in taken[room.name] if low <= position < high]
        written = [low for low, _ in taken[room.name] if low == position]
        is_like = room.lanes is Lanes.FULL and room.size == size and not room.is_for_scalars
        if is_like and not held and not written:
            return room.name
    for room in layout.buffers:
        if room.lanes is Lanes.HALF and room.size == size:
            return room.name
    room = Room(f"buffer{len(layout.buffers)}", Lanes.HALF, size)
    layout.buffers.append(room)
    taken[room.name] = []
    return room.name


def _overwritten(
    step: Step,
    ends: dict[int, int],
    names: dict[int, str],
    kind: _Kind,
    position: int,
) -> Value | None:
    """An operand that nothing reads after the step and whose buffer the result takes."""
    if step.onto is not None:
        if step.onto.home != "calc" or ends[step.onto.number] != position:
            raise InternalError(f"{step.text}: its operand is read afterwards")
        return step.onto
    for value in step.reads if step.in_place else ():
        same = value.home == "calc" and (value.lanes, SIZES[value.ctype]) == kind[:2]
        if same and not value.pinned and ends[value.number] == position:
            return value
    return None


def _queue(layout: Layout, value: Value, depth: int) -> str:
    """The room of a queue's tensor; queues are numbered by the one who made the value."""
    rooms, prefix = (layout.ins, "in") if value.home == "in" else (layout.outs, "out")
    name = f"{prefix}Queue{value.queue}"
    size = SIZES[value.ctype]
    for number, room in enumerate(rooms):
        if room.name == name:
            rooms[number] = _for_both(room, value.lanes, size)
            return name
    rooms.append(Room(name, value.lanes, size, 1 if value.once else depth))
    return name


_LARGER = (Lanes.FULL, *SPACED.values(), Lanes.CROSS)


def _for_both(room: Room, lanes: Lanes, size: int) -> Room:
    """A queue's room that also holds tensors of other lanes: the larger ones, or a whole tile. A
    transposed tile is no larger than a spaced one of its lanes."""
    widest = max(room.size, size)
    if room.lanes is lanes:
        return Room(room.name, lanes, widest, room.depth)
    both = {room.lanes, lanes}
    if Lanes.CROSS in both and both & set(SPACED.values()):
        widest *= max(SPACED)
    ranks = [_LARGER.index(kind) if kind in _LARGER else 0 for kind in both]
    return Room(room.name, _LARGER[max(ranks)], widest, room.depth)
