"""`Puller`: the elements of a region's values that have been pulled, and the axes opened for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kernel_gen.fusion.affine import ZERO, plain_axis
from kernel_gen.fusion.nest_builder import NestBuilder
from kernel_gen.fusion.region import Primitive, Region, Scalar
from kernel_gen.fusion.views import Indices
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Node
from kernel_gen.ir.index import Index
from kernel_gen.ir.loopnest import Guard, IndexValue, Load
from kernel_gen.ir.types import Shape

Guards = tuple[Guard, ...]


class PullNode(Protocol):
    """How an element of a node's value is computed from elements of its operands."""

    def __call__(self, puller: Puller, primitive: Primitive, at: Indices, guards: Guards) -> int:
        """The statement for element `at`; see `Puller.pull`."""
        ...


class Puller:
    """Computes elements of a region's values in a nest. The value of a statement of a narrow
    float type is held in fp32; with `strict`, rounded to that type."""

    def __init__(self, region: Region, pull_node: PullNode, *, strict: bool) -> None:
        self.region = region
        self.strict = strict
        self.nest = NestBuilder()
        self._pull_node = pull_node
        self._memo: dict[tuple[int, Indices, Guards], int] = {}
        self._inner_axes: dict[tuple[int, int], str] = {}
        # by left operand, however it is cast; such products sum along one axis
        self._products: dict[int, Node] = {}
        self._around: list[tuple[Shape, Indices]] = []  # values being pulled, outermost first

    def shape(self, value: int) -> Shape:
        return self.region.types[value].shape

    def dtype(self, value: int) -> DType:
        return self.region.types[value].dtype

    def pulled_at(self, value: int) -> Iterator[Indices]:
        """Indices at which `value` has been pulled without guards, in order."""
        return (at for found, at, guards in self._memo if found == value and not guards)

    def pull(self, value: int, at: Indices, guards: Guards = ()) -> int:
        """The statement for `value[at]`, in the compute type of the value's dtype.

        Where a guard does not hold the statement's value is arbitrary, but nothing is read.
        """
        at = tuple(
            ZERO if extent == 1 else i for extent, i in zip(self.shape(value), at, strict=True)
        )
        key = (value, at, guards)
        if key not in self._memo:
            self._around.append((self.shape(value), at))
            self._memo[key] = self._make(value, at, guards)
            self._around.pop()
        return self._memo[key]

    def _make(self, value: int, at: Indices, guards: Guards) -> int:
        dtype = self.dtype(value)
        if 0 in self.shape(value):  # no such element: whatever stands here is never computed
            return self.nest.const(0, dtype.compute)
        if value in self.region.scalars:
            return self.nest.const(self.region.scalars[value], dtype.compute)
        primitive = self.region.producers.get(value)
        if primitive is None:
            needed = _concerning(at, guards)
            return self.nest.add(Load(value, at, dtype.compute, needed, _zero(dtype)))
        return self._pull_node(self, primitive, at, guards)

    def inner_axis(
        self, node: Node, dim: int, taken: frozenset[str], *, shared: bool = False, operand: int = 0
    ) -> str:
        """The axis over which `node` sums along `dim` of an operand, none of those `taken`: its own
        earlier one, or with `shared` the one along which a reader of the sum runs, or a new one."""
        key = (node.output, dim)
        shape = self.shape(node.inputs[operand])
        axis = self._inner_axes.get(key)
        if axis is None or axis in taken:
            around = self._axis_around(shape, dim, taken) if shared else None
            axis = around or self.nest.fresh_axis("r", shape[dim])
            self._inner_axes[key] = axis
        return axis

    def _axis_around(self, shape: Shape, dim: int, taken: frozenset[str]) -> str | None:
        """The axis along `dim` of the innermost value in work that is as long there, and of which
        all elements are read: along a slice's axis not all are summed."""
        for other, at in reversed(self._around):
            if len(other) == len(shape) and other[dim] == shape[dim]:
                axis = plain_axis(at[dim])
                is_whole = axis is not None and self.nest.extents[axis] == shape[dim]
                if is_whole and axis not in taken:
                    return axis
        return None

    def first_product(self, node: Node) -> Node:
        """The first product pulled that has the left operand of `node`, however it is cast."""
        return self._products.setdefault(self._behind_casts(node.inputs[0]), node)

    def _behind_casts(self, value: int) -> int:
        """The value that a chain of casts in the region begins with."""
        while (made := self.region.producers.get(value)) is not None and made.node.op == "cast":
            (value,) = made.node.inputs
        return value

    def taken(self, at: Indices, guards: Guards) -> frozenset[str]:
        """Axes over which an element at `at` cannot be summed: it depends on them."""
        return self.nest.live_axes((*at, *(guard.index for guard in guards)))

    def inside(self, index: Index, low: int, high: int) -> int:
        """Bool statement `low <= index < high`."""
        found = self.nest.add(IndexValue(index))
        above = self.nest.compute("ge", (found, self.nest.const(low, DType.I64)), DType.BOOL)
        below = self.nest.compute("lt", (found, self.nest.const(high, DType.I64)), DType.BOOL)
        return self.nest.compute("logical_and", (above, below), DType.BOOL)


def _concerning(at: Indices, guards: Guards) -> Guards:
    """The guards that keep an element at `at` within its value: those over its axes, those over
    axes that these guards tie to them, and those over none. What is one for each channel is read
    in a window's padding as elsewhere."""
    if any(index.statements() for index in (*at, *(guard.index for guard in guards))):
        return guards
    axes = frozenset[str]().union(*(index.axes() for index in at))
    while True:
        kept = tuple(g for g in guards if not g.index.axes() or g.index.axes() & axes)
        tied = axes.union(*(g.index.axes() for g in kept))
        if tied == axes:
            return kept
        axes = tied


def _zero(dtype: DType) -> Scalar:
    if dtype is DType.BOOL:
        return False
    return 0.0 if dtype.is_float else 0
