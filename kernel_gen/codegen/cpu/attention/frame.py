"""What the kernel's functions share: heads, axis variables, loops of vectors with tails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernel_gen.codegen.cpu.attention.problem import Problem
from kernel_gen.codegen.cpu.attention.tiling import Tiling
from kernel_gen.codegen.cpu.axes import elems
from kernel_gen.codegen.cpu.functions import Functions
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, value_type
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Axis


@dataclass(frozen=True, slots=True)
class Frame(Functions):
    """A kernel under construction. The emitter's nest is the problem's."""

    problem: Problem
    tiling: Tiling

    @property
    def unit(self) -> Unit:
        return self.emitter.unit

    @property
    def scalar(self) -> str:
        """C type of scores and results."""
        return SCALAR_C[self.problem.dtype]

    def element(self, stored: DType | None) -> str:
        """C type of an operand's elements; None: they are like scores."""
        return self.scalar if stored is None else SCALAR_C[stored]

    @property
    def vector(self) -> str:
        """C type of a vector of scores or results."""
        return value_type(self.unit, self.problem.dtype, self.emitter.lanes)

    def declare(self, scope: Scope, axes: tuple[Axis, ...], linear: str) -> None:
        """Axis variables from a row-major position, bound in `scope`.

        (i0 < 3, i1 < 4), "m"  ->  const gaf_i64 i1 = m % 4, i0 = m / 4;
        """
        scope.add(f"(void){linear};")
        rest = linear
        for place, axis in reversed(list(enumerate(axes))):
            value = rest if place == 0 else f"({rest}) % {axis.extent}"
            scope.add(f"const gaf_i64 {axis.name} = {value}; (void){axis.name};")
            rest = f"({rest}) / {axis.extent}"
            scope.axes[axis.name] = Binding(axis.name)

    def vectors(
        self,
        scope: Scope,
        axis: Axis,
        end: str,
        body: Callable[[Scope], None],
        first: str | None = None,
    ) -> None:
        """`body` for whole vectors c = 0, lanes, … and once for the rest, `part` lanes.

        `axis` runs along the vector from `first + c`, by default from c.
        """
        lanes = self.tiling.lanes
        at = f"({first} + c)" if first else "c"
        axes = {axis.name: Binding(at, vector=True)}
        block = scope.open("{")
        block.add("gaf_i64 c = 0;")
        full = block.open(f"for (; c + {lanes} <= {end}; c += {lanes}) {{", dict(axes))
        body(full)
        full.close()
        if not end.isdigit() or int(end) % lanes:
            rest = block.open(f"if (c < {end}) {{", dict(axes), part="part")
            rest.add(f"const int part = (int)({end} - c);")
            body(rest)
            rest.close()
        block.close()


def linear_position(axes: tuple[Axis, ...], scaled: int) -> str:
    """C expression of the row-major position in `axes`, times `scaled`."""
    parts = [
        f"{axis.name} * {elems(axes[place + 1 :]) * scaled}ll" for place, axis in enumerate(axes)
    ]
    return " + ".join(parts) or "0"
