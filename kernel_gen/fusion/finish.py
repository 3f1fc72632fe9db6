"""From a draft to a canonical nest: axes and buffers in a fixed order, with fixed names."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from kernel_gen.fusion.draft import Draft, rewritten
from kernel_gen.fusion.share_axes import share_axes
from kernel_gen.fusion.split_axes import split_axes
from kernel_gen.fusion.split_pieces import split_pieces
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.index import AxisTerm, Index, axis_index
from kernel_gen.ir.loopnest import (
    Axis,
    Buffer,
    BufferRole,
    Contract,
    Load,
    LoopNest,
    Reduce,
    Statement,
    indices,
)


def finish(
    program: Graph, draft: Draft, constants: Container[int], written_back: Mapping[int, int]
) -> tuple[LoopNest, tuple[int, ...]]:
    """The nest of a draft, and the program's value behind each of its buffers.

    `written_back` are the values that take an input's place (`write_back.written_back`). Buffers
    stand in the order in which statements read them, then outputs in the group's order.
    Axes of outputs are i0, i1, … in the order of the largest output's dimensions, others r0, r1, ….
    """
    cut = split_pieces(split_axes(split_pieces(draft)))  # axes of a stack lie inside of merged ones
    draft = _named(share_axes(cut))
    reads = [s.buffer for s in draft.statements if isinstance(s, Load)]
    read = tuple(dict.fromkeys(reads))
    written = tuple(dict.fromkeys(store.buffer for store in draft.stores))
    place = {value: position for position, value in enumerate(read)}
    buffers = tuple(_read_buffer(program, value, constants) for value in read)
    outputs = tuple(
        Buffer(program.type_of(v), BufferRole.OUTPUT, place.get(written_back.get(v, -1)))
        for v in written
    )
    statements = tuple(_placed(s, place) for s in draft.statements)
    stores = tuple(replace(s, buffer=len(read) + written.index(s.buffer)) for s in draft.stores)
    axes = tuple(Axis(name, extent) for name, extent in draft.extents.items())
    return LoopNest(axes, buffers + outputs, statements, stores), read + written


def _read_buffer(program: Graph, value: int, constants: Container[int]) -> Buffer:
    role = BufferRole.CONSTANT if value in constants else BufferRole.INPUT
    return Buffer(program.type_of(value), role)


def _placed(statement: Statement, place: dict[int, int]) -> Statement:
    if isinstance(statement, Load):
        return replace(statement, buffer=place[statement.buffer])
    return statement


def _named(draft: Draft) -> Draft:
    outer = _outer_axes(draft)
    inner = [axis for axis in _axes_in_use(draft) if axis not in outer]
    names = {axis: f"i{n}" for n, axis in enumerate(outer)}
    names |= {axis: f"r{n}" for n, axis in enumerate(inner)}
    extents = {new: draft.extents[old] for old, new in names.items()}
    return rewritten(draft, {old: axis_index(new) for old, new in names.items()}, extents)


def _outer_axes(draft: Draft) -> tuple[str, ...]:
    """Axes of the stores, those of the store with most of them first, row-major."""
    by_rank = sorted(draft.stores, key=lambda store: -sum(len(i.axes()) for i in store.index))
    found = [axis for store in by_rank for index in store.index for axis in _by_stride(index)]
    return tuple(dict.fromkeys(found))


def _by_stride(index: Index) -> list[str]:
    """Axes of an index, largest stride first, those inside divisions last."""
    plain = sorted((-c, t.axis) for t, c in index.terms if isinstance(t, AxisTerm))
    names = [axis for _, axis in plain]
    return names + sorted(index.axes().difference(names))


def _axes_in_use(draft: Draft) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for statement in draft.statements:
        for index in indices(statement):
            found.update(dict.fromkeys(_by_stride(index)))
        if isinstance(statement, Reduce | Contract):
            found.update(dict.fromkeys(statement.axes))
    return tuple(found)
