"""Tiles of pointwise nests whose reads run against the grain: transposed in registers.

out[i, j] = x[j, i] + y[i, j], vectors along j: lanes of x lie a row apart. A square tile loads
`lanes` vectors of x along i, transposes them in registers, and goes on as if x had been read along
j. Both sides then touch whole cache lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.vectors.moves import load_function
from kernel_gen.codegen.cpu.vectors.types import value_type
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType


def transposable(nest: FlatNest, across: str, along: str) -> tuple[int, ...]:
    """Loads that have stride one along `across` and another stride along the vector axis."""
    return tuple(
        i
        for i, s in enumerate(nest.statements)
        if isinstance(s, FlatLoad) and _is_transposed(s, across, along)
    )


def _is_transposed(load: FlatLoad, across: str, along: str) -> bool:
    at = load.at
    plain = at.is_affine_in(across) and at.is_affine_in(along) and not at.statements()
    return plain and not load.guards and at.coeff(across).const == 1 and bool(at.coeff(along).terms)


@dataclass(frozen=True, slots=True)
class Tile:
    """A block [`u0`, `u1`) × [`v0`, `v1`) of the axes `across` and `along`, as C expressions.
    `ahead`: whether the operands of the next row of tiles are fetched."""

    across: str
    along: str
    u0: str
    u1: str
    v0: str
    v1: str
    ahead: bool


def tile_loops(emitter: Emitter, scope: Scope, tile: Tile) -> tuple[str, str]:
    """Whole square tiles of the block; returns where they end along both axes."""
    lanes = emitter.lanes.count
    u_end, v_end = emitter.fresh("e"), emitter.fresh("e")
    scope.add(f"const gaf_i64 {u_end} = {tile.u0} + ({tile.u1} - {tile.u0}) / {lanes} * {lanes};")
    scope.add(f"const gaf_i64 {v_end} = {tile.v0} + ({tile.v1} - {tile.v0}) / {lanes} * {lanes};")
    u, v = emitter.fresh("u"), emitter.fresh("v")
    outer = scope.open(f"for (gaf_i64 {u} = {tile.u0}; {u} < {u_end}; {u} += {lanes}) {{")
    inner = outer.open(
        f"for (gaf_i64 {v} = {tile.v0}; {v} < {v_end}; {v} += {lanes}) {{",
        {tile.along: Binding(v, True)},
    )
    loads = transposable(emitter.nest, tile.across, tile.along)
    names = {i: _load_tile(emitter, inner, i, tile, u, v) for i in loads}
    if tile.ahead:
        _fetch(emitter, inner, tile, u)
    k = emitter.fresh("k")
    body = inner.open(
        f"#pragma GCC unroll {lanes}\nfor (int {k} = 0; {k} < {lanes}; {k}++) {{",
        {tile.across: Binding(f"({u} + {k})")},
    )
    for i, name in names.items():
        load = _load(emitter, i)
        held = emitter.nest.buffers[load.buffer].type.dtype.compute
        text = emitter.ops.cast(Value(f"{name}[{k}]", held, True), load.dtype)
        body.define(
            i, Value(emitter.declare(body, load.dtype, text, vector=True), load.dtype, True)
        )
    for store in emitter.nest.stores:
        emitter.store(store, body)
    for block in (body, inner, outer):
        block.close()
    return u_end, v_end


def _fetch(emitter: Emitter, scope: Scope, tile: Tile, u: str) -> None:
    """Asks for the vectors that the next row of tiles reads, of all operands that move with it."""
    lanes, nest = emitter.lanes.count, emitter.nest
    crossed = transposable(nest, tile.across, tile.along)
    place = scope.inline({tile.across: Binding(f"({u} + {lanes})")})
    lines = []
    for i, load in enumerate(nest.statements):
        if isinstance(load, FlatLoad) and (i in crossed or _moves(load, tile)):
            step = load.at.coeff(tile.along if i in crossed else tile.across).text()
            at = f"b{load.buffer} + {emitter.addresses.offset(load.at, place)} + {step} * l"
            lines.append(f"  __builtin_prefetch({at}, 0, 2);")
    scope.add(f"#pragma GCC unroll {lanes}\nfor (int l = 0; l < {lanes}; l++) {{")
    scope.add("\n".join([*dict.fromkeys(lines), "}"]))


def _moves(load: FlatLoad, tile: Tile) -> bool:
    """Whether a load reads vectors along the tile, others in each of its rows."""
    at = load.at
    plain = not at.statements() and at.is_affine_in(tile.along) and at.is_affine_in(tile.across)
    return plain and at.coeff(tile.along).const == 1 and bool(at.coeff(tile.across).terms)


def _load(emitter: Emitter, i: int) -> FlatLoad:
    load = emitter.nest.statements[i]
    if not isinstance(load, FlatLoad):
        raise InternalError(f"statement {i} is no load")
    return load


def _load_tile(emitter: Emitter, scope: Scope, i: int, tile: Tile, u: str, v: str) -> str:
    """`lanes` vectors along `across`, transposed, in an array of the returned name."""
    load = _load(emitter, i)
    stored = emitter.nest.buffers[load.buffer].type.dtype
    lanes = emitter.lanes.count
    kind = value_type(emitter.unit, stored, emitter.lanes)
    function = load_function(emitter.unit, stored, emitter.lanes, partial=False)
    name = emitter.fresh("x")
    place = scope.inline({tile.across: Binding(u), tile.along: Binding(v)})
    base = emitter.addresses.offset(load.at, place)
    stride = load.at.coeff(tile.along).text()
    scope.add(f"{kind} {name}[{lanes}];")
    scope.add(f"#pragma GCC unroll {lanes}")
    scope.add(
        f"for (int l = 0; l < {lanes}; l++) {name}[l] = "
        f"{function}(b{load.buffer} + {base} + {stride} * l);"
    )
    scope.add(f"{_transpose(emitter, stored)}({name});")
    return name


def _transpose(emitter: Emitter, stored: DType) -> str:
    """In-place transpose of a square of vectors: off-diagonal blocks of 1, 2, 4, … are swapped."""
    lanes = emitter.lanes.count
    kind = value_type(emitter.unit, stored, emitter.lanes)
    name = f"gaf_transpose_{kind.removeprefix('gaf_')}"
    lines = [f"static inline __attribute__((always_inline)) void {name}({kind} *r) {{"]
    distance = 1
    while distance < lanes:
        upper = [lanes + j - distance if j & distance else j for j in range(lanes)]
        lower = [lanes + j if j & distance else j + distance for j in range(lanes)]
        for i in (i for i in range(lanes) if not i & distance):
            a, b = f"r[{i}]", f"r[{i + distance}]"
            lines.append(
                f"  {{ const {kind} a = {a}, b = {b};\n"
                f"    {a} = __builtin_shufflevector(a, b, {', '.join(map(str, upper))});\n"
                f"    {b} = __builtin_shufflevector(a, b, {', '.join(map(str, lower))}); }}"
            )
        distance *= 2
    return emitter.unit.helper(name, "\n".join([*lines, "}"]))
