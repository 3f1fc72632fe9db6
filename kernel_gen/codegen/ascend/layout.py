"""Buffers for values by lifetime, barriers between dependent vector instructions, and the text.

Two values share a buffer if they have the same kind of lanes and width, and one is read for the
last time before the other is written. Queues give each load and store its own double buffer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_gen.codegen.ascend.banks import second_half
from kernel_gen.codegen.ascend.steps import SIZES, Body, Lanes, Loop, Step, Value, steps_of
from kernel_gen.errors import InternalError

_TOKEN = re.compile(r"@(\d+)@")
BARRIER = "PipeBarrier<PIPE_V>();"


@dataclass(frozen=True, slots=True)
class Room:
    """One buffer in UB, or one queue of `depth` buffers."""

    name: str
    lanes: Lanes
    size: int  # bytes per lane; 0: one bit per lane
    depth: int = 1


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
    _Printer(layout, names, ends).block(body, indent)
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
    free: dict[tuple[Lanes, int], list[str]] = {}
    busy: list[tuple[int, tuple[Lanes, int], str]] = []
    names: dict[int, str] = {}
    for position, item, _ in _numbered(body):
        if isinstance(item, Loop):
            continue
        for entry in [b for b in busy if b[0] < position]:
            busy.remove(entry)
            free.setdefault(entry[1], []).append(entry[2])
        for value in item.writes:
            if value.number in names:
                continue
            kind = (value.lanes, SIZES[value.ctype])
            dying = _overwritten(item, ends, names, kind, position)
            if value.home != "calc":
                names[value.number] = _queue(layout, value, depth)
            elif dying is not None:
                names[value.number] = names[dying.number]
                busy = [b for b in busy if b[2] != names[dying.number]]
                busy.append((ends[value.number], kind, names[value.number]))
            elif free.get(kind):
                names[value.number] = free[kind].pop()
                busy.append((ends[value.number], kind, names[value.number]))
            else:
                room = Room(f"buffer{len(layout.buffers)}", value.lanes, kind[1])
                layout.buffers.append(room)
                names[value.number] = room.name
                busy.append((ends[value.number], kind, room.name))
    return names


def _overwritten(
    step: Step,
    ends: dict[int, int],
    names: dict[int, str],
    kind: tuple[Lanes, int],
    position: int,
) -> Value | None:
    """An operand that nothing reads after the step and whose buffer the result takes."""
    if step.onto is not None:
        if step.onto.home != "calc" or ends[step.onto.number] != position:
            raise InternalError(f"{step.text}: its operand is read afterwards")
        return step.onto
    for value in step.reads if step.in_place else ():
        same = (value.lanes, SIZES[value.ctype]) == kind and value.home == "calc"
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
            widest = max(room.size, size)
            lanes = Lanes.FULL if value.lanes is not room.lanes else room.lanes
            rooms[number] = Room(name, lanes, widest, room.depth)
            return name
    rooms.append(Room(name, value.lanes, size, 1 if value.once else depth))
    return name


# ---- printing ------------------------------------------------------------------------------------


class _Printer:
    """Prints steps; declares values where they are written first, frees queue tensors after use."""

    def __init__(self, layout: Layout, names: dict[int, str], ends: dict[int, int]) -> None:
        self._layout = layout
        self._rooms = names
        self._ends = ends
        self._depths: dict[int, int] = {}  # loops around the declaration of a value
        self._live: dict[int, Value] = {}  # tensors of input queues that are to be freed
        self._depth = 0
        self._position = 0
        self._read: set[str] = set()
        self._written: set[str] = set()

    def block(self, body: Body, indent: str) -> None:
        for item in body:
            if isinstance(item, Loop):
                self._loop(item, indent)
            else:
                self._step(item, indent)

    def _loop(self, loop: Loop, indent: str) -> None:
        known = (set(self._read), set(self._written))
        self._put(indent, loop.head)
        self._depth += 1
        self.block(loop.body, indent + "    ")
        self._depth -= 1
        self._put(indent + "    ", BARRIER)
        self._put(indent, "}")
        self._read, self._written = known
        self._free(indent)

    def _step(self, step: Step, indent: str) -> None:
        if step.vector:
            self._order(step, indent)
        for value in step.writes:
            if value.number not in self._depths:
                self._depths[value.number] = self._depth
                self._declare(value, indent)
        text = _TOKEN.sub(lambda found: _name(int(found[1])), step.text)
        for line in text.splitlines():
            self._put(indent, line)
        self._position += 1
        self._free(indent)

    def _free(self, indent: str) -> None:
        """Frees tensors that nothing reads any more, in the block that allocated them."""
        for number in list(self._live):
            if self._depths[number] == self._depth and self._ends[number] < self._position:
                del self._live[number]
                self._put(indent, f"{self._rooms[number]}.FreeTensor({_name(number)});")

    def _order(self, step: Step, indent: str) -> None:
        """A barrier if the step touches what an instruction in flight writes, or writes what one
        reads."""
        reads = {self._place(v) for v in step.reads}
        writes = {self._place(v) for v in step.writes}
        if (reads | writes) & self._written or writes & self._read:
            self._put(indent, BARRIER)
            self._read, self._written = set(), set()
        self._read |= reads
        self._written |= writes

    def _place(self, value: Value) -> str:
        return self._rooms[value.number] if value.home == "calc" else f"@{value.number}"

    def _declare(self, value: Value, indent: str) -> None:
        if value.home == "in":
            self._live[value.number] = value
            return  # its step allocates it
        kind = "uint8_t" if value.ctype == "bits" else value.ctype
        name, room = _name(value.number), self._rooms[value.number]
        call = f"{room}.AllocTensor<{kind}>()" if value.home == "out" else f"{room}.Get<{kind}>()"
        self._put(indent, f"LocalTensor<{kind}> {name} = {call};")

    def _put(self, indent: str, line: str) -> None:
        self._layout.lines.append(f"{indent}{line}" if line else "")


def _name(number: int) -> str:
    return f"v{number}"
