"""What the kernel's functions share: heads, loops along axes, tails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.functions import Functions
from kernel_gen.codegen.cpu.linear import FlatLoad
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.text import split_axes
from kernel_gen.codegen.cpu.matmul.tiling import Tiling
from kernel_gen.codegen.cpu.scope import Binding, Scope
from kernel_gen.codegen.cpu.vectypes import SCALAR_C, value_type
from kernel_gen.ir.loopnest import Axis


@dataclass(frozen=True, slots=True)
class Frame(Functions):
    """A kernel under construction. The emitter's nest is the problem's, flattened."""

    problem: Problem
    tiling: Tiling

    @property
    def scalar(self) -> str:
        """C type of the product's elements."""
        return SCALAR_C[self.problem.product.dtype]

    @property
    def vector(self) -> str:
        """C type of a vector of the product's elements."""
        return value_type(self.emitter.unit, self.problem.product.dtype, self.emitter.lanes)

    def declare(self, scope: Scope, axes: tuple[Axis, ...], linear: str) -> None:
        """Axis variables from a linear position, bound in `scope`."""
        if not axes:
            scope.add(f"(void){linear};")
            return
        scope.add(split_axes(axes, linear, ""))
        scope.axes.update({axis.name: Binding(axis.name) for axis in axes})

    def vectors(
        self,
        scope: Scope,
        axis: Axis | None,
        end: str,
        first: str,
        body: Callable[[Scope], None],
        *,
        whole: bool = False,
    ) -> None:
        """`body` for whole vectors c = 0, lanes, … and once for the rest, `part` lanes.

        `axis` runs along the vector from `first + c`; None where the operand has no such axis.
        `whole` tells that `end` is a multiple of the lanes, where its text does not.
        """
        lanes = self.tiling.lanes
        axes = {axis.name: Binding(f"({first} + c)", vector=True)} if axis else {}
        scope.add("gaf_i64 c = 0;")
        full = scope.open(f"for (; c + {lanes} <= {end}; c += {lanes}) {{", dict(axes))
        body(full)
        full.close()
        if whole or (end.isdigit() and int(end) % lanes == 0):
            return
        rest = scope.open(f"if (c < {end}) {{", dict(axes), part="part")
        rest.add(f"const int part = (int)({end} - c);")
        body(rest)
        rest.close()

    def runs_along(self, root: int, axes: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
        """Whether memory behind statement `root` runs along the last of `axes` and of no `other`:
        some load has stride 1 there, and none in the others."""
        if not axes:
            return False
        loads = self._loads_behind(root)
        along = any(load.at.coeff(axes[-1].name).const == 1 for load in loads)
        across = any(load.at.coeff(axis.name).const == 1 for load in loads for axis in other[-1:])
        return along and not across

    def _loads_behind(self, root: int) -> list[FlatLoad]:
        from kernel_gen.codegen.cpu.matmul.problem import ancestors

        statements = (
            self.emitter.nest.statements[p] for p in ancestors(self.problem.nest, (root,))
        )
        return [s for s in statements if isinstance(s, FlatLoad)]


def linear_position(axes: tuple[Axis, ...], scaled: int) -> str:
    """C expression of the row-major position in `axes`, times `scaled`."""
    parts: list[str] = []
    step = scaled
    for axis in reversed(axes):
        parts.append(f"{axis.name} * {step}ll")
        step *= extent(axis)
    return " + ".join(reversed(parts)) or "0"
