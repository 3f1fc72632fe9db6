"""Template "pointwise": nests without reductions, vectorised along one axis."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernel_gen.codegen.cpu.changed import changed_part
from kernel_gen.codegen.cpu.frame import Part, kernel_source, split_over_threads
from kernel_gen.codegen.cpu.in_place import in_place_pairs
from kernel_gen.codegen.cpu.pointwise_loops import Again, Walk, pointwise_loops, vector_loop
from kernel_gen.codegen.cpu.reductions.rowspace import (
    by_contiguity,
    first_ahead,
    first_stream,
    first_threads,
    stream_choices,
    streamed,
)
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.transposed import Tile, tile_loops, transposable
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.types import Lanes, pick_lanes
from kernel_gen.codegen.flat.beside import window_axis
from kernel_gen.codegen.flat.linear import FlatNest, flatten
from kernel_gen.codegen.flat.repeated import Repeated, repeated_rows
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import Contract, LoopNest, Reduce
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import Dim
from kernel_gen.schedule.schedule import Choice, Parameter, Point, Schedule, Space
from kernel_gen.schedule.words import choice, decisions

_BLOCKS = (64, 128, 256, 512, 1024, 4096, 16384)
_ROWS = (1, 2, 4, 8)
_AGAIN = (1, 4, 8, 16)
_MANY = 120  # statements whose copies for several rows keep a compiler busy


@dataclass(frozen=True, slots=True)
class Pointwise:
    """Elementwise groups with any broadcast, strided, guarded or indirect read."""

    name: str = "pointwise"

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        for position, statement in enumerate(nest.statements):
            if isinstance(statement, Reduce | Contract):
                return Refusal(
                    "not-pointwise", f"statement {position} reduces over {statement.axes}"
                )
        if len({frozenset(_store_axes(nest, k)) for k in range(len(nest.stores))}) > 1:
            return Refusal("mixed-domains", "the stores run over different axes")
        return None

    def space(self, nest: LoopNest, target: Target) -> Space:
        refused = self.refuse(nest, target)
        if refused is not None:
            raise InvalidGraph(refused.sentence)
        flat = simplify(flatten(nest))
        axes = _vector_axes(flat)
        parameters = (
            Parameter("axis", axes),
            Parameter("across", _across_axes(flat, axes)),
            Parameter("ahead", (0, 1) if _across_axes(flat, axes)[1:] else (0,)),
            Parameter("block", _BLOCKS),
            Parameter("unroll", (1, 2, 4)),
            Parameter("rows", _row_choices(flat, axes)),
            Parameter("again", _again_choices(flat, axes, target)),
            Parameter("stream", stream_choices(flat)),
            Parameter("threads", ("one", "all")),
        )
        return Space(parameters, _seeds(flat, axes, target))

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        flat = simplify(flatten(nest))
        axis, across = str(point["axis"]), str(point["across"])
        if across and (across == axis or not transposable(flat, across, axis)):
            return Refusal("no-transposed-read", f"no read is transposed from {axis} to {across}")
        if point.get("ahead", 0) and not across:
            return Refusal(
                "no-transposed-read", "only tiles of a transposed read are fetched ahead"
            )
        if point.get("rows", 1) != 1 and (across or window_axis(flat, axis) is None):
            return Refusal("no-window", f"rows side by side read nothing twice along {axis}")
        if point.get("again", 1) != 1:
            if across or point.get("rows", 1) != 1:
                return Refusal("no-rows-again", "tiles and rows side by side have their own order")
            if _repeated(flat, axis, target) is None:
                return Refusal("no-rows-again", f"no large rows along {axis} are read again")
        return Schedule(self.name, decisions(point))

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        flat = simplify(flatten(nest))
        unit = Unit()
        axis = str(choice(schedule, "axis"))
        extent = flat.extent(axis) if axis else 1
        pairs = () if choice(schedule, "across") else in_place_pairs(flat)
        emitter = Emitter(
            flat,
            unit,
            _lanes(flat, target, extent),
            streamed(flat, choice(schedule, "stream")),
            shared=frozenset(number for pair in pairs for number in pair),
        )
        root = emitter.root()
        if axis and choice(schedule, "across"):
            _tiles(emitter, root, axis, schedule)
        elif axis:
            walk = _walk(emitter, axis, schedule, _repeated(flat, axis, target))
            _loops_in_place(emitter, root, walk, pairs)
        else:
            emitter.stores(root)
        # Without an axis each thread would do all of it, and read what another has written.
        parallel = bool(axis) and choice(schedule, "threads") == "all"
        return replace(kernel_source(unit, root, symbol, parallel=parallel), in_place=pairs)


def _store_axes(nest: LoopNest, position: int) -> set[str]:
    return {a for index in nest.stores[position].index for a in index.axes()}


def _vector_axes(flat: FlatNest) -> tuple[str, ...]:
    """Axes worth vectorising: those with stride one in some access, or else the last one."""
    ranked = by_contiguity(flat.accesses(), tuple(a.name for a in flat.axes))
    useful = [a for a in ranked if any(x.at.coeff(a).const == 1 for x in flat.accesses())]
    return tuple(useful or ranked[:1]) or ("",)


def _across_axes(flat: FlatNest, axes: tuple[str, ...]) -> tuple[str, ...]:
    """ "" (no tiles), and the axes along which some read transposed from a vector axis runs."""
    names = [a.name for a in flat.axes]
    found = [u for u in names if any(u != v and transposable(flat, u, v) for v in axes)]
    return ("", *found)


def _row_choices(flat: FlatNest, axes: tuple[str, ...]) -> tuple[Choice, ...]:
    """Steps of another axis side by side; one where they read nothing twice."""
    shares = not in_place_pairs(flat) and any(window_axis(flat, a) for a in axes if a)
    return _ROWS if shares and len(flat.statements) <= _MANY else _ROWS[:1]


def _again_choices(flat: FlatNest, axes: tuple[str, ...], target: Target) -> tuple[Choice, ...]:
    """Steps of an axis that read a block of rows before the next block is read."""
    found = not in_place_pairs(flat) and any(_repeated(flat, a, target) for a in axes)
    return _AGAIN if found else _AGAIN[:1]


def _seeds(
    flat: FlatNest, axes: tuple[str, ...], target: Target
) -> tuple[tuple[tuple[str, Choice], ...], ...]:
    """Along the stores' contiguous axis, in tiles if a read is transposed, by several rows if they
    read the same, what is read again by blocks or by single rows (few streams of memory, each as
    long as it was); then plainly."""
    along = next((a for a in axes if all(s.at.coeff(a).const == 1 for s in flat.stores)), axes[0])
    plain: dict[str, Choice] = {
        "axis": along, "across": "", "ahead": 0, "block": 4096, "unroll": 2, "rows": 1, "again": 1,
        "stream": first_stream(flat, target), "threads": first_threads(flat),
    }  # fmt: skip
    across = [
        u for u in _across_axes(flat, axes)[1:] if u != along and transposable(flat, u, along)
    ]
    points = [{**plain, "across": u, "block": 128} for u in across[:1]]
    if first_ahead(flat, target):
        fetched = [{**p, "ahead": 1, "block": 512} for p in points]
        points = [*({**p, "stream": n} for n in (1, 0) for p in fetched), *points]
    if len(_row_choices(flat, axes)) > 1 and window_axis(flat, along) is not None:
        points.append({**plain, "unroll": 1, "rows": 4})
    if _repeated(flat, along, target) is not None and not in_place_pairs(flat):
        points += [{**plain, "block": 512, "again": 8}, {**plain, "block": 64, "again": 4}]
    points += [plain, {**plain, "unroll": 1, "stream": 1}, {**plain, "stream": 0}]
    return tuple(dict.fromkeys(tuple(p.items()) for p in points))


def _lanes(flat: FlatNest, target: Target, extent: Dim) -> Lanes:
    dtypes = [s.dtype for s in flat.statements]
    return pick_lanes(dtypes, target, extent if isinstance(extent, int) else None)


def _loops_in_place(
    emitter: Emitter, root: Scope, walk: Walk, pairs: tuple[tuple[int, int], ...]
) -> None:
    """The loops; over the inputs that outputs replace, only over what changes in them, and by plain
    stores: the lines are in the cache, so a store past it spares no read."""
    part = changed_part(emitter.nest, *pairs[0]) if len(pairs) == 1 else None
    written = frozenset(output for _, output in pairs)
    if part is None and not emitter.streams(written):
        pointwise_loops(emitter, root, walk)
        return
    same = (f"(const void *)b{source} == (const void *)b{output}" for source, output in pairs)
    over = root.open(f"if ({' && '.join(same)}) {{")
    changed = emitter.on(part or emitter.nest, plain=written)
    pointwise_loops(changed, over, walk)
    over.close()
    apart = root.open("else {")
    pointwise_loops(emitter, apart, walk)
    apart.close()


def _repeated(flat: FlatNest, axis: str, target: Target) -> Repeated | None:
    return repeated_rows(flat, axis, target.l1_bytes) if axis else None


def _walk(emitter: Emitter, axis: str, schedule: Schedule, repeated: Repeated | None) -> Walk:
    lanes = emitter.lanes.count
    rows = int(str(choice(schedule, "rows"))) if schedule.find("rows") else 1
    again = int(str(choice(schedule, "again"))) if schedule.find("again") else 1
    return Walk(
        axis,
        max(int(str(choice(schedule, "block"))) // lanes * lanes, lanes),
        int(str(choice(schedule, "unroll"))),
        window_axis(emitter.nest, axis) if rows > 1 else None,
        rows,
        Again(repeated, again) if repeated is not None and again > 1 else None,
    )


def _tiles(emitter: Emitter, root: Scope, axis: str, schedule: Schedule) -> None:
    """Blocks of two axes over threads; in each block register tiles, then its ragged edges."""
    flat, lanes = emitter.nest, emitter.lanes.count
    across = str(choice(schedule, "across"))
    ahead = bool(schedule.find("ahead") and choice(schedule, "ahead"))
    block = max(min(int(str(choice(schedule, "block"))), 512) // lanes * lanes, lanes)
    parts = [
        Part(a.name, flat.extent_text(a.name)) for a in flat.axes if a.name not in (axis, across)
    ]
    for a in (across, axis):
        parts.append(Part(a, f"({flat.extent_text(a)} + {block - 1}) / {block}", block))
    loop = split_over_threads(root, parts)
    ends = {}
    for a in (across, axis):
        start, extent = loop.axes[a].text, flat.extent_text(a)
        ends[a] = emitter.fresh("q")
        loop.add(
            f"const gaf_i64 {ends[a]} = "
            f"{start} + {block} < {extent} ? {start} + {block} : {extent};"
        )
    u0, v0 = loop.axes.pop(across).text, loop.axes.pop(axis).text
    u1, v1 = tile_loops(emitter, loop, Tile(across, axis, u0, ends[across], v0, ends[axis], ahead))
    for low, high, start in ((u0, u1, v1), (u1, ends[across], v0)):
        name = emitter.fresh("i")
        head = f"for (gaf_i64 {name} = {low}; {name} < {high}; {name}++) {{"
        rest = loop.open(head, {across: Binding(name)})
        vector_loop(emitter, rest, axis, start, ends[axis], 1)
        rest.close()
    loop.close()
