"""Rewrites a nest into the shape that the matmul template likes; the operands' ABI stays.

Three steps, each gives an equal nest:

    flatten   x[i0, i1] of strides (64, 1)      ->  x[64·i0 + i1], all buffers of rank 1
    merge     x[64·i0 + i1], i0 < 4, i1 < 64    ->  x[i1], i1 < 256, where every access allows it
    orient    stores that run along the lhs     ->  lhs and rhs swapped, so that vectors store
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kernel_gen.codegen.cpu.matmul.problem import ancestors, axis_groups
from kernel_gen.ir.index import FloorDiv, Index, Mod, axis_index
from kernel_gen.ir.loopnest import (
    Axis,
    Buffer,
    BufferRole,
    Contract,
    Guard,
    IndexValue,
    Load,
    LoopNest,
    Reduce,
    Statement,
    indices,
)
from kernel_gen.ir.types import TensorType


def normalise(nest: LoopNest) -> LoopNest:
    """An equal nest with flat buffers, few axes, and the product's columns where stores run."""
    oriented = _orient(_drop_unit_axes(_flatten(nest)))
    for group in axis_groups(oriented):
        oriented = _merge_group(oriented, group)
    return _rename(oriented)


def _rename(nest: LoopNest) -> LoopNest:
    """Axes named a0, a1, … so that no name meets a variable of the template's own."""
    names = {axis.name: f"a{i}" for i, axis in enumerate(nest.axes)}
    moved = _substitute(nest, {old: axis_index(new) for old, new in names.items()}, nest.axes)
    statements = tuple(
        replace(s, axes=tuple(names[a] for a in s.axes)) if isinstance(s, Reduce | Contract) else s
        for s in moved.statements
    )
    axes = tuple(Axis(names[axis.name], axis.extent) for axis in nest.axes)
    return LoopNest(axes, moved.buffers, statements, moved.stores)


def _flatten(nest: LoopNest) -> LoopNest:
    """Buffers as rank 1 with stride 1, strides move into the index.

    Buffers that are read at computed positions keep their dimensions: the position is checked
    against the dimension that it indexes.
    """
    kept = {
        s.buffer
        for s in nest.statements
        if isinstance(s, Load) and any(index.statements() for index in s.index)
    }

    def flat(buffer: int, index: tuple[Index, ...]) -> tuple[Index, ...]:
        if buffer in kept:
            return index
        total = Index()
        for part, stride in zip(index, nest.buffers[buffer].type.element_strides, strict=True):
            total = total + part * stride
        return (total,)

    def statement(s: Statement) -> Statement:
        return replace(s, index=flat(s.buffer, s.index)) if isinstance(s, Load) else s

    def reshaped(number: int, buffer: Buffer) -> Buffer:
        if number in kept:
            return buffer
        return Buffer(TensorType(buffer.type.dtype, (_span(buffer.type),)), buffer.role)

    return LoopNest(
        axes=nest.axes,
        buffers=tuple(reshaped(number, buffer) for number, buffer in enumerate(nest.buffers)),
        statements=tuple(statement(s) for s in nest.statements),
        stores=tuple(replace(s, index=flat(s.buffer, s.index)) for s in nest.stores),
    )


def _span(type_: TensorType) -> int:
    """Elements from a tensor's first to its last, both included."""
    if type_.elems == 0:
        return 0
    shape = [d for d in type_.shape if isinstance(d, int)]
    return 1 + sum((d - 1) * s for d, s in zip(shape, type_.element_strides, strict=True))


def _substitute(nest: LoopNest, replacement: dict[str, Index], axes: tuple[Axis, ...]) -> LoopNest:
    """The nest over `axes` with indices rewritten and reductions over vanished axes trimmed."""
    kept = {axis.name for axis in axes}

    def change(index: Index) -> Index:
        return index.substitute(replacement)

    return LoopNest(
        axes=axes,
        buffers=nest.buffers,
        statements=tuple(_rewrite(s, change, kept) for s in nest.statements),
        stores=tuple(
            replace(
                s,
                index=tuple(change(i) for i in s.index),
                guards=_guards(s.guards, change),
            )
            for s in nest.stores
        ),
    )


def _rewrite(s: Statement, change: Callable[[Index], Index], kept: set[str]) -> Statement:
    match s:
        case Load():
            index = tuple(change(i) for i in s.index)
            return replace(s, index=index, guards=_guards(s.guards, change))
        case IndexValue():
            return replace(s, index=change(s.index))
        case Reduce() | Contract():
            return replace(s, axes=tuple(name for name in s.axes if name in kept))
        case _:
            return s


def _guards(guards: tuple[Guard, ...], change: Callable[[Index], Index]) -> tuple[Guard, ...]:
    return tuple(replace(guard, index=change(guard.index)) for guard in guards)


def _drop_unit_axes(nest: LoopNest) -> LoopNest:
    """Axes of extent 1 vanish, but the last one of each sum stays."""
    sums = [s.axes for s in nest.statements if isinstance(s, Reduce | Contract)]
    units = {axis.name for axis in nest.axes if axis.extent == 1}
    spared = {axes[-1] for axes in sums if axes and set(axes) <= units}
    gone = units - spared
    axes = tuple(axis for axis in nest.axes if axis.name not in gone)
    return _substitute(nest, {name: Index() for name in gone}, axes)


def _all_indices(nest: LoopNest) -> Iterator[Index]:
    for statement in nest.statements:
        yield from indices(statement)
    for store in nest.stores:
        yield from store.index
        yield from (guard.index for guard in store.guards)


def _merge_group(nest: LoopNest, group: tuple[str, ...]) -> LoopNest:
    """Merge pairs of `group` as long as some pair (outer, inner) is one axis in every access."""
    names = list(group)
    merged = True
    while merged:
        merged = False
        for outer in names:
            inner = next((i for i in names if i != outer and _mergeable(nest, outer, i)), None)
            if inner is not None:
                nest = _merge(nest, outer, inner)
                names.remove(outer)
                merged = True
                break
    return nest


def _mergeable(nest: LoopNest, outer: str, inner: str) -> bool:
    inner_extent = nest.axis(inner).extent
    outer_extent = nest.axis(outer).extent
    if not isinstance(inner_extent, int) or not isinstance(outer_extent, int):
        return False
    for statement in nest.statements:
        both = {outer, inner}
        if isinstance(statement, Reduce | Contract) and len(both & set(statement.axes)) == 1:
            return False
        if isinstance(statement, Reduce) and statement.op.startswith("arg"):
            return False
    return all(
        index.coeff(outer) == index.coeff(inner) * inner_extent
        and not _inside_division(index, {outer, inner})
        for index in _all_indices(nest)
    )


def _inside_division(index: Index, names: set[str]) -> bool:
    return any(
        isinstance(term, FloorDiv | Mod) and bool(term.index.axes() & names)
        for term, _ in index.terms
    )


def _merge(nest: LoopNest, outer: str, inner: str) -> LoopNest:
    total = int(nest.axis(outer).extent) * int(nest.axis(inner).extent)  # type: ignore[arg-type]
    axes = tuple(
        Axis(a.name, total) if a.name == inner else a for a in nest.axes if a.name != outer
    )
    return _substitute(nest, {outer: Index()}, axes)


def _orient(nest: LoopNest) -> LoopNest:
    """Swap the operands if only that makes stores run along columns; order the column axes so
    that the one of stride 1 in the stores is the innermost."""
    products = [i for i, s in enumerate(nest.statements) if isinstance(s, Contract)]
    if len(products) == 1:
        nest = _swap_if_better(nest, products[0])
    _, _, cols, depth = axis_groups(nest)
    nest = _innermost(nest, [i for s in nest.stores for i in s.index], cols)
    return _innermost(nest, _read_in_calls(nest), depth)


def _read_in_calls(nest: LoopNest) -> list[Index]:
    """Indices of the loads that each call makes: constants are packed once, whatever their order;
    they count where all operands are constant."""
    loads = [s for s in nest.statements if isinstance(s, Load)]
    changing = [s for s in loads if nest.buffers[s.buffer].role is not BufferRole.CONSTANT]
    return [index for load in changing or loads for index in load.index]


def _swap_if_better(nest: LoopNest, position: int) -> LoopNest:
    product = nest.statements[position]
    assert isinstance(product, Contract)
    _, rows, cols, _ = axis_groups(nest)
    if not _should_swap(nest, product, rows, cols):
        return nest
    swapped = replace(product, lhs=product.rhs, rhs=product.lhs)
    statements = (*nest.statements[:position], swapped, *nest.statements[position + 1 :])
    return replace(nest, statements=statements)


def _should_swap(
    nest: LoopNest, product: Contract, rows: tuple[str, ...], cols: tuple[str, ...]
) -> bool:
    reduced_left = _holds_reduction(nest, product.lhs)
    reduced_right = _holds_reduction(nest, product.rhs)
    if reduced_left or reduced_right:
        return not reduced_left
    reduced = {axis for s in nest.statements if isinstance(s, Reduce) for axis in s.axes}
    if reduced:  # of the product: such reductions run along its columns
        return reduced <= set(rows)
    if _reads_windows(nest, product):
        return False  # they are pointed at, and their vectors would be stored in no better order
    stored = [index for store in nest.stores for index in store.index]
    along_cols = any(index.coeff(name) == 1 for index in stored for name in cols)
    along_rows = any(index.coeff(name) == 1 for index in stored for name in rows)
    return along_rows and not along_cols


def _reads_windows(nest: LoopNest, product: Contract) -> bool:
    """Whether the left operand is an image read in windows whose channels are innermost."""
    load = nest.statements[product.lhs]
    if not isinstance(load, Load) or not load.guards:
        return False
    guarded = {name for guard in load.guards for name in guard.index.axes()}
    return any(load.index[-1].coeff(name) == 1 for name in product.axes if name not in guarded)


def _holds_reduction(nest: LoopNest, root: int) -> bool:
    return any(isinstance(nest.statements[p], Reduce) for p in ancestors(nest, (root,)))


def _innermost(nest: LoopNest, accesses: list[Index], group: tuple[str, ...]) -> LoopNest:
    """The nest with that axis of `group` last which most accesses read with stride 1."""
    if len(group) < 2:
        return nest
    votes = {name: sum(index.coeff(name) == 1 for index in accesses) for name in group}
    best = max(reversed(group), key=lambda name: votes[name])
    axes = (*(a for a in nest.axes if a.name != best), nest.axis(best))
    return replace(nest, axes=axes)
