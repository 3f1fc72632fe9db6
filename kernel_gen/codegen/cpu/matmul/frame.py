"""What the kernel's functions share: heads, loops along axes, tails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kernel_gen.codegen.cpu.axes import elems, extent
from kernel_gen.codegen.cpu.functions import Functions
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.text import split_axes
from kernel_gen.codegen.cpu.matmul.tiling import Tiling
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, value_type
from kernel_gen.codegen.flat.linear import FlatLoad
from kernel_gen.codegen.flat.phases import closure
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

    @contextmanager
    def runs(self, scope: Scope) -> Iterator[Scope]:
        """A loop over the runs of a tile's columns n0, …, n0 + cols - 1: one, or where columns are
        joined one for each point of the outer column axes. `columns` goes along a run."""
        p = self.problem
        if not self.tiling.joined:
            self.declare(scope, p.cols[:-1], "slab")
            yield scope
            return
        inner = p.inner_cols
        scope.add("(void)slab;")
        run = scope.open("for (gaf_i64 c0 = 0, run; c0 < cols; c0 += run) {")
        run.add(f"const gaf_i64 first = (n0 + c0) % {inner};")
        run.add(f"run = {inner} - first < cols - c0 ? {inner} - first : cols - c0;")
        self.declare(run, p.cols[:-1], f"(n0 + c0) / {inner}")
        yield run
        run.close()

    def columns(self, scope: Scope, body: Callable[[Scope, str], None]) -> None:
        """`body` for the vectors of a run, given the expression of a vector's place in the tile."""
        last = self.problem.cols[-1] if self.problem.cols else None
        if self.tiling.joined:
            self.vectors(scope, last, "run", "first", lambda block: body(block, "(c0 + c)"))
        else:
            self.vectors(scope, last, "cols", "n0", lambda block: body(block, "c"))

    @contextmanager
    def steps(self, scope: Scope, axes: tuple[Axis, ...], *, cut: bool) -> Iterator[Scope]:
        """Loops over the first axes of the depth. `cut`: the steps [k0, k1) of k alone, which begin
        and end with a step of the outermost axis."""
        if not cut or not axes:
            with self.loops(scope, axes) as inner:
                yield inner
            return
        name, inside = axes[0].name, max(elems(self.problem.depth[1:]), 1)
        head = f"for (gaf_i64 {name} = k0 / {inside}; {name} < k1 / {inside}; ++{name}) {{"
        outer = scope.open(head, {name: Binding(name)})
        with self.loops(outer, axes[1:]) as inner:
            yield inner
        outer.close()

    def runs_along(self, root: int, axes: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
        """Whether memory behind statement `root` runs along the last of `axes` and of no `other`:
        some load has stride 1 there, and none in the others."""
        return self.steps_along(root, axes, 1) and not self.steps_along(root, other, 1)

    def steps_along(self, root: int, axes: tuple[Axis, ...], stride: int) -> bool:
        """Whether some load behind `root` has this stride along the last of `axes`."""
        loads = self._loads_behind(root)
        return any(load.at.coeff(a.name).const == stride for load in loads for a in axes[-1:])

    def _loads_behind(self, root: int) -> list[FlatLoad]:
        nest = self.emitter.nest
        statements = (nest.statements[p] for p in sorted(closure(nest, [root])))
        return [s for s in statements if isinstance(s, FlatLoad)]


def linear_position(axes: tuple[Axis, ...], scaled: int) -> str:
    """C expression of the row-major position in `axes`, times `scaled`."""
    parts: list[str] = []
    step = scaled
    for axis in reversed(axes):
        parts.append(f"{axis.name} * {step}ll")
        step *= extent(axis)
    return " + ".join(reversed(parts)) or "0"
