"""Scopes: blocks of generated text in which axes are bound to C expressions.

A `Scope` is a block of a kernel; its statements' values are known to the blocks inside. At most one
axis is bound as a vector: `Binding.text` is then the position of its first lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.errors import InternalError
from kernel_gen.ir.index import ValueTerm


@dataclass(frozen=True, slots=True)
class Binding:
    """What an axis is in a scope: a C expression, of the first lane if `vector`."""

    text: str
    vector: bool = False


Held = int | ValueTerm  # a statement's value, or a position that was put within its dimension


@dataclass(slots=True, eq=False)
class Scope:
    """A block of generated text; nested scopes close into their parent's lines.

    `part` is the C expression of how many lanes count where the vector is a tail.
    """

    parent: Scope | None = None
    axes: dict[str, Binding] = field(default_factory=dict)
    part: str | None = None
    depth: int = 0
    head_lines: int = 0
    text: list[str] = field(default_factory=list)
    values: dict[Held, Value] = field(default_factory=dict)

    def open(
        self, head: str, axes: dict[str, Binding] | None = None, part: str | None = None
    ) -> Scope:
        """A nested block that starts with `head` (a line ending in a brace, pragmas before it)."""
        inner = Scope(self, dict(axes or {}), part, self.depth + 1)
        inner.text += head.split("\n")
        inner.head_lines = len(inner.text)
        return inner

    def inline(self, axes: dict[str, Binding]) -> Scope:
        """A scope without braces: its lines go straight into this block."""
        inner = Scope(self, dict(axes), depth=self.depth + 1)
        inner.text = self.text
        return inner

    def close(self) -> None:
        """Appends the block to its parent."""
        if self.parent is None:
            raise InternalError("the function scope does not close")
        head, body = self.text[: self.head_lines], self.text[self.head_lines :]
        self.parent.text += [*head, *("  " + line for line in body), "}"]

    def add(self, line: str) -> None:
        self.text += line.split("\n")

    def define(self, held: Held, value: Value) -> None:
        """Announces a value that is held in a C variable of this scope."""
        self.values[held] = value

    def _chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def outermost(self) -> Scope:
        """The function scope."""
        return list(self._chain())[-1]

    def binding(self, axis: str) -> Binding | None:
        return next((s.axes[axis] for s in self._chain() if axis in s.axes), None)

    def binder(self, axis: str) -> Scope:
        """The scope that binds `axis`."""
        for scope in self._chain():
            if axis in scope.axes:
                return scope
        raise InternalError(f"axis {axis} is not bound here")

    def find(self, held: Held) -> Value | None:
        return next((s.values[held] for s in self._chain() if held in s.values), None)

    def holder(self, statement: int) -> Scope:
        """The scope that holds the value of `statement`."""
        for scope in self._chain():
            if statement in scope.values:
                return scope
        raise InternalError(f"statement {statement} has no value here")

    def live_lanes(self) -> str | None:
        """How many lanes count here, None for all."""
        return next((s.part for s in self._chain() if s.part is not None), None)
