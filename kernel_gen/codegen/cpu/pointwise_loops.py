"""Loops of pointwise nests: blocks over threads, rows side by side, vectors of one axis.

Rows that are read again at each step of an axis outside theirs (`Again`) go through the first-level
cache in blocks: the block is read at several steps of that axis before the next one.

    for h < 8, p < 512: …   ->   for blocks of p: for h < 8: for p in the block: …
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.codegen.cpu.frame import Part, split_over_threads
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.flat.beside import inside, side_by_side
from kernel_gen.codegen.flat.repeated import Repeated
from kernel_gen.ir.loopnest import Axis

_ENOUGH_TASKS = 64  # outer steps beyond which further axes become plain inner loops


@dataclass(frozen=True, slots=True)
class Again:
    """Rows that are read again, in blocks of the walk's `block` elements: how many steps of the
    axis outside read one block before the next."""

    what: Repeated
    steps: int


@dataclass(frozen=True, slots=True)
class Walk:
    """How a pointwise nest is walked: vectors along `axis` in blocks of `block` elements, whole
    vectors unrolled; `rows` steps of the axis `beside` (None: of none) at a time, or blocks of rows
    that are read `again`."""

    axis: str
    block: int
    unroll: int
    beside: str | None = None
    rows: int = 1
    again: Again | None = None


def pointwise_loops(emitter: Emitter, root: Scope, walk: Walk) -> None:
    """All of the nest's stores, shared out among threads."""
    flat, axis, block = emitter.nest, walk.axis, walk.block
    extent = flat.extent_text(axis)
    shared: list[Axis] = []
    inner: list[Axis] = []
    tasks = 1
    blocks = _blocks_again(emitter, walk)
    for a in (a for a in flat.axes if a.name not in {axis, walk.beside, *blocks}):
        (shared if tasks < _ENOUGH_TASKS else inner).append(a)
        tasks *= a.extent if isinstance(a.extent, int) else _ENOUGH_TASKS
    parts = [Part(a.name, flat.extent_text(a.name)) for a in shared]
    parts += [_part(emitter, name, size) for name, size in blocks.items()]
    span = _span(emitter, walk, tasks)
    if walk.beside is not None:
        parts.append(_part(emitter, walk.beside, span))
    parts.append(_part(emitter, axis, block))
    loop = split_over_threads(root, parts)
    start = loop.axes.pop(axis).text
    loop.add(f"const gaf_i64 end = {start} + {block} < {extent} ? {start} + {block} : {extent};")
    scopes = [loop]
    for name, size in blocks.items():
        scopes.append(_block_loop(emitter, scopes[-1], name, size))
    for a in inner:
        name = emitter.fresh("i")
        head = f"for (gaf_i64 {name} = 0; {name} < {flat.extent_text(a.name)}; {name}++) {{"
        scopes.append(scopes[-1].open(head, {a.name: Binding(name)}))
    if walk.beside is None:
        vector_loop(emitter, scopes[-1], axis, start, "end", walk.unroll)
    else:
        _rows(emitter, scopes[-1], walk, start, span)
    for scope in reversed(scopes):
        scope.close()


def _part(emitter: Emitter, axis: str, size: int) -> Part:
    """The blocks of an axis."""
    return Part(axis, f"({emitter.nest.extent_text(axis)} + {size - 1}) / {size}", size)


def _blocks_again(emitter: Emitter, walk: Walk) -> dict[str, int]:
    """Axis and size of the blocks, outermost first, of what is read again."""
    if walk.again is None:
        return {}
    what, steps = walk.again.what, walk.again.steps
    if what.rows is None:
        return {what.over: steps}
    extent = emitter.nest.extent(walk.axis)
    rows = max(walk.block // extent, 1) if isinstance(extent, int) and extent else 1
    return {what.over: steps, what.rows: rows}


def _block_loop(emitter: Emitter, scope: Scope, axis: str, size: int) -> Scope:
    """The loop over a task's block of an axis."""
    low = scope.binder(axis).axes.pop(axis).text
    extent, high, i = emitter.nest.extent_text(axis), emitter.fresh("e"), emitter.fresh("i")
    scope.add(f"const gaf_i64 {high} = {low} + {size} < {extent} ? {low} + {size} : {extent};")
    return scope.open(f"for (gaf_i64 {i} = {low}; {i} < {high}; {i}++) {{", {axis: Binding(i)})


def _span(emitter: Emitter, walk: Walk, tasks: int) -> int:
    """Steps of the axis `beside` in a task, a multiple of `rows`; all if tasks are enough."""
    if walk.beside is None:
        return 1
    extent, along = emitter.nest.extent(walk.beside), emitter.nest.extent(walk.axis)
    assert isinstance(extent, int)
    tasks *= -(-along // walk.block) if isinstance(along, int) else 1
    cuts = max(_ENOUGH_TASKS // tasks, 1)
    return math.ceil(extent / cuts / walk.rows) * walk.rows


def _rows(emitter: Emitter, scope: Scope, walk: Walk, start: str, span: int) -> None:
    """A task's rows, several at a time where no guard asks for them, the others one by one."""
    beside, rows = walk.beside, walk.rows
    assert beside is not None
    low = scope.binder(beside).axes.pop(beside).text
    extent = emitter.nest.extent_text(beside)
    high, i = emitter.fresh("e"), emitter.fresh("i")
    scope.add(f"const gaf_i64 {high} = {low} + {span} < {extent} ? {low} + {span} : {extent};")
    plain, first, end = inside(emitter.nest, beside, rows)
    loop = scope.open(f"for (gaf_i64 {i} = {low}; {i} < {high};) {{")
    here = {beside: Binding(i)}
    several = loop.open(f"if ({i} >= {first} && {i} < {end} && {i} + {rows} <= {high}) {{", here)
    joined = emitter.on(side_by_side(plain, beside, rows))
    vector_loop(joined, several, walk.axis, start, "end", walk.unroll)
    emitter.names = joined.names
    several.add(f"{i} += {rows};")
    several.close()
    one = loop.open("else {", here)
    vector_loop(emitter, one, walk.axis, start, "end", walk.unroll)
    one.add(f"{i}++;")
    one.close()
    loop.close()


def vector_loop(
    emitter: Emitter, scope: Scope, axis: str, start: str, end: str, unroll: int
) -> None:
    """Whole vectors from `start`, then one partial vector, storing every output of the nest."""
    lanes = emitter.lanes.count
    j = emitter.fresh("j")
    scope.add(f"gaf_i64 {j} = {start};")
    pragma = f"#pragma GCC unroll {unroll}\n" if unroll > 1 else ""
    head = f"{pragma}for (; {j} + {lanes} <= {end}; {j} += {lanes}) {{"
    body = scope.open(head, {axis: Binding(j, True)})
    emitter.stores(body)
    body.close()
    extent = emitter.nest.extent(axis)
    if isinstance(extent, int) and extent % lanes == 0:
        return
    tail = scope.open(f"if ({j} < {end}) {{", {axis: Binding(j, True)}, part=f"(int)({end} - {j})")
    emitter.stores(tail)
    tail.close()
