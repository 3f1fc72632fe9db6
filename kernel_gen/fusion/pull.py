"""Pulling values through nodes: the statement that computes one element of a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kernel_gen.fusion.affine import ZERO, bounds, plain_axis
from kernel_gen.fusion.nest_builder import NestBuilder, guarded
from kernel_gen.fusion.pull_convolution import pull_convolution
from kernel_gen.fusion.region import Primitive, Region, Scalar
from kernel_gen.fusion.views import (
    Indices,
    RefusedError,
    broadcast_index,
    int_attr,
    int_tuple,
    known,
    source_index,
)
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Node
from kernel_gen.ir.index import Index, ValueTerm, axis_index
from kernel_gen.ir.loopnest import Contract, Guard, IndexValue, Load, Reduce
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.types import Dim, Shape

Guards = tuple[Guard, ...]
_EXACT = frozenset((OpKind.VIEW, OpKind.JOIN, OpKind.INDEXED))  # results need no rounding


class Puller:
    """Computes elements of a region's values in a nest. The value of a statement of a narrow
    float type is held in fp32."""

    def __init__(self, region: Region, *, strict: bool) -> None:
        self.region = region
        self.nest = NestBuilder()
        self._strict = strict
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
            return self.nest.add(Load(value, at, dtype.compute, guards, _zero(dtype)))
        kind = spec(primitive.node.op).kind
        made = self._node(primitive, kind, at, guards)
        if self._strict and kind not in _EXACT and not _is_number(primitive.node):
            return self._rounded(made, dtype)
        return made

    def _node(self, primitive: Primitive, kind: OpKind, at: Indices, guards: Guards) -> int:
        node = primitive.node
        match kind:
            case OpKind.CAST:
                return self._cast(primitive, at, guards)
            case OpKind.SOURCE:
                return self._source(node, at)
            case OpKind.REDUCTION:
                return self._reduce(node, at, guards)
            case OpKind.CONTRACTION:
                return self._contract(node, at, guards)
            case OpKind.JOIN:
                return self._concat(node, at, guards)
            case OpKind.INDEXED:
                return self._indexed(node, at, guards)
            case OpKind.VIEW:
                return (
                    self._pad(node, at, guards)
                    if node.op == "pad"
                    else self._view(node, at, guards)
                )
        args = tuple(self._operand(node, value, at, guards) for value in node.inputs)
        return self.nest.compute(node.op, args, self.dtype(node.output).compute)

    def _operand(self, node: Node, value: int, at: Indices, guards: Guards) -> int:
        """An operand of an elementwise node, broadcast to the node's shape."""
        result = self.shape(node.output)
        return self.pull(value, broadcast_index(self.shape(value), result, at), guards)

    def _view(self, node: Node, at: Indices, guards: Guards) -> int:
        (value,) = node.inputs
        result = self.shape(node.output)
        source = source_index(node, self.shape(value), result, at, self.nest.extents)
        return self.pull(value, source, guards)

    def _cast(self, primitive: Primitive, at: Indices, guards: Guards) -> int:
        """A cast of the program rounds: to a narrow type, and from one before it widens."""
        (value,) = primitive.node.inputs
        source, target = self.dtype(value), self.dtype(primitive.node.output)
        made = self.pull(value, at, guards)
        if not primitive.explicit or source is target:
            return self.nest.cast(made, target.compute)
        return self._rounded(self.nest.cast(self._rounded(made, source), target), target)

    def _rounded(self, statement: int, dtype: DType) -> int:
        """`statement` rounded to a narrow storage type and back, unless it has just been read."""
        made = self.nest.statements[statement]
        if isinstance(made, Load) and self.dtype(made.buffer) is dtype:
            return statement
        return self.nest.cast(self.nest.cast(statement, dtype), dtype.compute)

    def _source(self, node: Node, at: Indices) -> int:
        dtype = self.dtype(node.output)
        if node.op == "full":
            return self.nest.const(self._literal(node.attr("value"), dtype), dtype.compute)
        position = at[int_attr(node, "dim")]
        start, step = _number(node, "start"), _number(node, "step")
        if isinstance(start, int) and isinstance(step, int):
            index = self.nest.add(IndexValue(position * step + start))
            return self.nest.cast(index, dtype.compute)
        index = self.nest.cast(self.nest.add(IndexValue(position)), dtype.compute)
        scaled = (index, self.nest.const(step, dtype.compute))
        product = self.nest.compute("mul", scaled, dtype.compute)
        offset = self.nest.const(start, dtype.compute)
        return self.nest.compute("add", (product, offset), dtype.compute)

    def _literal(self, value: object, dtype: DType) -> Scalar:
        if not isinstance(value, bool | int | float):
            raise RefusedError("bad-attribute", f"scalar {value!r}")
        if self._strict and dtype.is_float:
            return float(np.asarray(value).astype(numpy_dtype(dtype.compute)))
        return value

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
        """The axis along `dim` of the innermost value in work that is as long there."""
        for other, at in reversed(self._around):
            if len(other) == len(shape) and other[dim] == shape[dim]:
                axis = plain_axis(at[dim])
                if axis is not None and axis not in taken:
                    return axis
        return None

    def taken(self, at: Indices, guards: Guards) -> frozenset[str]:
        """Axes over which an element at `at` cannot be summed: it depends on them."""
        return self.nest.live_axes((*at, *(guard.index for guard in guards)))

    def _reduce(self, node: Node, at: Indices, guards: Guards) -> int:
        (value,) = node.inputs
        shape, dims, dtype = self.shape(value), int_tuple(node, "dims"), self.dtype(node.output)
        rest = [i for d, i in enumerate(at) if d not in dims] if node.attr("keepdim") else list(at)
        taken, axes = self.taken(at, guards), {}
        for d in (d for d in dims if shape[d] != 1):
            axes[d] = self.inner_axis(node, d, taken, shared=True)
            taken |= {axes[d]}
        source = [
            axis_index(axes[d]) if d in axes else ZERO if d in dims else rest.pop(0)
            for d in range(len(shape))
        ]
        if not axes and node.op in ("argmax", "argmin"):  # the position of an only element
            return self.nest.const(0, dtype)
        arg = self.pull(value, tuple(source), guards)
        if not axes:
            return arg
        return self.nest.add(Reduce(node.op, arg, tuple(axes.values()), dtype.compute))

    def _contract(self, node: Node, at: Indices, guards: Guards) -> int:
        if node.op == "convolution":
            return pull_convolution(self, node, at, guards)
        lhs, rhs = node.inputs
        first = self._products.setdefault(self._behind_casts(lhs), node)
        axis = self.inner_axis(first, len(self.shape(lhs)) - 1, self.taken(at, guards))
        inner, batch = axis_index(axis), self.shape(node.output)[:-2]
        left = (*broadcast_index(self.shape(lhs)[:-2], batch, at[:-2]), at[-2], inner)
        right = (*broadcast_index(self.shape(rhs)[:-2], batch, at[:-2]), inner, at[-1])
        args = self.pull(lhs, left, guards), self.pull(rhs, right, guards)
        return self.nest.add(Contract(*args, (axis,), self.dtype(node.output).compute))

    def _behind_casts(self, value: int) -> int:
        """The value that a chain of casts in the region begins with."""
        while (made := self.region.producers.get(value)) is not None and made.node.op == "cast":
            (value,) = made.node.inputs
        return value

    def inside(self, index: Index, low: int, high: int) -> int:
        """Bool statement `low <= index < high`."""
        found = self.nest.add(IndexValue(index))
        above = self.nest.compute("ge", (found, self.nest.const(low, DType.I64)), DType.BOOL)
        below = self.nest.compute("lt", (found, self.nest.const(high, DType.I64)), DType.BOOL)
        return self.nest.compute("logical_and", (above, below), DType.BOOL)

    def _pad(self, node: Node, at: Indices, guards: Guards) -> int:
        (value,) = node.inputs
        low, high = int_tuple(node, "low"), int_tuple(node, "high")
        source = tuple(i + -before for i, before in zip(at, low, strict=True))
        inner = guards
        padded = [d for d in range(len(source)) if low[d] or high[d]]
        for d in padded:
            inner = guarded(inner, source[d], 0, known(self.shape(value)[d], node))
        dtype = self.dtype(node.output)
        literal = self._literal(node.attr("value"), dtype)
        made = self.pull(value, source, inner)
        read = self.nest.statements[made]
        if isinstance(read, Load) and read.guards == inner:  # it gives the fill outside itself
            return self.nest.add(replace(read, fill=literal)) if inner else made
        fill = self.nest.const(literal, dtype.compute)
        for d in padded:
            condition = self.inside(source[d], 0, known(self.shape(value)[d], node))
            made = self.nest.compute("where", (condition, made, fill), dtype.compute)
        return made

    def _concat(self, node: Node, at: Indices, guards: Guards) -> int:
        """A chain of selects: where(i < end0, piece0, where(i < end1, piece1, …))."""
        dim, dtype = int_attr(node, "dim"), self.dtype(node.output).compute
        pieces: list[tuple[int, int]] = []
        start = 0
        for value in node.inputs:
            extent = known(self.shape(value)[dim], node)
            if extent:
                source = at[dim] + -start
                inner = guarded(guards, source, 0, extent)
                pieces.append(
                    (start + extent, self.pull(value, (*at[:dim], source, *at[dim + 1 :]), inner))
                )
            start += extent
        if not pieces:
            return self.nest.const(0, dtype)
        made = pieces[-1][1]
        position = self.nest.add(IndexValue(at[dim]))
        for end, piece in reversed(pieces[:-1]):
            limit = self.nest.const(end, DType.I64)
            before = self.nest.compute("lt", (position, limit), DType.BOOL)
            made = self.nest.compute("where", (before, piece, made), dtype)
        return made

    def _indexed(self, node: Node, at: Indices, guards: Guards) -> int:
        table, positions = node.inputs
        dim = int_attr(node, "dim")
        extent = self.shape(table)[dim]
        if node.op == "gather":
            found = self._position(self.pull(positions, at, guards), extent)
            return self.pull(table, (*at[:dim], found, *at[dim + 1 :]), guards)
        rank = len(self.shape(positions))
        found = self._position(self.pull(positions, at[dim : dim + rank], guards), extent)
        return self.pull(table, (*at[:dim], found, *at[dim + rank :]), guards)

    def _position(self, statement: int, extent: Dim) -> Index:
        """The position in a dimension that a statement holds, as it is if the statement is an index
        itself that cannot leave the dimension."""
        made = self.nest.statements[statement]
        if isinstance(made, IndexValue) and self._stays(made.index, extent):
            return made.index
        return Index(((ValueTerm(statement, extent), 1),))

    def _stays(self, index: Index, extent: Dim) -> bool:
        axis = plain_axis(index)
        if axis is not None and self.nest.extents[axis] == extent:
            return True
        low, high = bounds(index, self.nest.extents)
        return isinstance(extent, int) and low >= 0 and high < extent


def _is_number(node: Node) -> bool:
    """Whether the node is a Python number beside a tensor, which eager does not round."""
    return node.op == "full" and node.attr("shape") == ()


def _zero(dtype: DType) -> Scalar:
    if dtype is DType.BOOL:
        return False
    return 0.0 if dtype.is_float else 0


def _number(node: Node, key: str) -> int | float:
    value = node.attr(key)
    if not isinstance(value, int | float):
        raise RefusedError("bad-attribute", f"{node.op} {node.name}: {key}={value!r}")
    return value
