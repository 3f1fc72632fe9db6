"""The lines of a body whose values have rooms; barriers between dependent vector instructions."""

from __future__ import annotations

import re

from kernel_gen.codegen.ascend.instructions.steps import Body, Loop, Step, Value

_TOKEN = re.compile(r"@(\d+)@")
_BARRIER = "PipeBarrier<PIPE_V>();"


class Printer:
    """Prints steps; declares values where they are written first, frees queue tensors after use."""

    def __init__(self, names: dict[int, str], ends: dict[int, int]) -> None:
        self.lines: list[str] = []
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
        self._put(indent + "    ", _BARRIER)
        self._put(indent, "}")
        self._read, self._written = known
        self._free(indent)

    def _step(self, step: Step, indent: str) -> None:
        if step.note:
            self._put(indent, f"// {step.note}")
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
            self._put(indent, _BARRIER)
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
        self.lines.append(f"{indent}{line}" if line else "")


def _name(number: int) -> str:
    return f"v{number}"
