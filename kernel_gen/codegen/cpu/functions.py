"""Kernels made of several C functions: their heads, and loops along axes within them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.ir.loopnest import Axis


@dataclass(frozen=True, slots=True)
class Functions:
    """A kernel under construction: `symbol` begins the names of its functions."""

    symbol: str
    emitter: Emitter

    def function(self, name: str, parameters: str, result: str = "void") -> Scope:
        """Scope of `result symbol_name(args, status, parameters)`, operand pointers declared."""
        scope = self.emitter.root()
        head = f"static __attribute__((noinline)) {result} {self.symbol}_{name}"
        scope.text.insert(0, f"{head}(const gaf_kernel_args *args, int &status, {parameters}) {{")
        scope.add("(void)status;")
        return scope

    def finish(self, scope: Scope) -> str:
        """The function's text, its body indented."""
        head, *body = scope.text
        return "\n".join([head, *("  " + line for line in body), "}"])

    def operand(self, statement: int, scope: Scope) -> str:
        """A statement's value as a vector expression."""
        return self.emitter.ops.broadcast(self.emitter.value(statement, scope)).text

    @contextmanager
    def loops(self, scope: Scope, axes: tuple[Axis, ...]) -> Iterator[Scope]:
        """Nested counting loops over `axes`, closed on leaving."""
        opened: list[Scope] = []
        for axis in axes:
            name = axis.name
            head = f"for (gaf_i64 {name} = 0; {name} < {extent(axis)}; ++{name}) {{"
            scope = scope.open(head, {name: Binding(name)})
            opened.append(scope)
        yield scope
        for loop in reversed(opened):
            loop.close()
