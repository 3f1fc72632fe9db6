"""Nodes that compute nothing: an element of theirs is an element of an operand, or a fill."""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.fusion.affine import bounds, plain_axis
from kernel_gen.fusion.nest_builder import NestBuilder, guarded
from kernel_gen.fusion.pull.puller import Guards, Puller
from kernel_gen.fusion.pull.values import literal
from kernel_gen.fusion.views import Indices, int_attr, int_tuple, known, source_index
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Node
from kernel_gen.ir.index import Index, ValueTerm
from kernel_gen.ir.loopnest import IndexValue, Load
from kernel_gen.ir.types import Dim


def pull_view(puller: Puller, node: Node, at: Indices, guards: Guards) -> int:
    """The operand's element under the view's index map."""
    (value,) = node.inputs
    result = puller.shape(node.output)
    source = source_index(node, puller.shape(value), result, at, puller.nest.extents)
    return puller.pull(value, source, guards)


def pull_pad(puller: Puller, node: Node, at: Indices, guards: Guards) -> int:
    """The operand's element, guarded, and the fill around it."""
    (value,) = node.inputs
    nest, shape, dtype = puller.nest, puller.shape(value), puller.dtype(node.output)
    low, high = int_tuple(node, "low"), int_tuple(node, "high")
    source = tuple(i + -before for i, before in zip(at, low, strict=True))
    inner = guards
    padded = [d for d in range(len(source)) if low[d] or high[d]]
    for d in padded:
        inner = guarded(inner, source[d], 0, known(shape[d], node))
    filled = literal(puller, node.attr("value"), dtype)
    made = puller.pull(value, source, inner)
    read = nest.statements[made]
    if isinstance(read, Load) and read.guards == inner:  # it gives the fill outside itself
        return nest.add(replace(read, fill=filled)) if inner else made
    fill = nest.const(filled, dtype.compute)
    for d in padded:
        condition = puller.inside(source[d], 0, known(shape[d], node))
        made = nest.compute("where", (condition, made, fill), dtype.compute)
    return made


def pull_concat(puller: Puller, node: Node, at: Indices, guards: Guards) -> int:
    """A chain of selects: where(i < end0, piece0, where(i < end1, piece1, …))."""
    nest, dim, dtype = puller.nest, int_attr(node, "dim"), puller.dtype(node.output).compute
    pieces = _pieces(puller, node, dim, at, guards)
    if not pieces:
        return nest.const(0, dtype)
    made = pieces[-1][1]
    position = nest.add(IndexValue(at[dim]))
    for end, piece in reversed(pieces[:-1]):
        before = nest.compute("lt", (position, nest.const(end, DType.I64)), DType.BOOL)
        made = nest.compute("where", (before, piece, made), dtype)
    return made


def _pieces(
    puller: Puller, node: Node, dim: int, at: Indices, guards: Guards
) -> list[tuple[int, int]]:
    """Where each piece that is not empty ends along `dim`, and the statement for its element."""
    pieces: list[tuple[int, int]] = []
    start = 0
    for value in node.inputs:
        extent = known(puller.shape(value)[dim], node)
        if extent:
            source = at[dim] + -start
            inner = guarded(guards, source, 0, extent)
            made = puller.pull(value, (*at[:dim], source, *at[dim + 1 :]), inner)
            pieces.append((start + extent, made))
        start += extent
    return pieces


def pull_indexed(puller: Puller, node: Node, at: Indices, guards: Guards) -> int:
    """The table's element at the position that another operand holds."""
    table, positions = node.inputs
    dim = int_attr(node, "dim")
    extent = puller.shape(table)[dim]
    if node.op == "gather":
        found = _position(puller.nest, puller.pull(positions, at, guards), extent)
        return puller.pull(table, (*at[:dim], found, *at[dim + 1 :]), guards)
    rank = len(puller.shape(positions))
    found = _position(puller.nest, puller.pull(positions, at[dim : dim + rank], guards), extent)
    return puller.pull(table, (*at[:dim], found, *at[dim + rank :]), guards)


def _position(nest: NestBuilder, statement: int, extent: Dim) -> Index:
    """The position in a dimension that a statement holds, as it is if the statement is an index
    itself that cannot leave the dimension."""
    made = nest.statements[statement]
    if isinstance(made, IndexValue) and _stays(nest, made.index, extent):
        return made.index
    return Index(((ValueTerm(statement, extent), 1),))


def _stays(nest: NestBuilder, index: Index, extent: Dim) -> bool:
    axis = plain_axis(index)
    if axis is not None and nest.extents[axis] == extent:
        return True
    low, high = bounds(index, nest.extents)
    return isinstance(extent, int) and low >= 0 and high < extent
