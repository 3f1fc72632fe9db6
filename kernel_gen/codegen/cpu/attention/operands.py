"""Reading queries, keys and values into scratch, prologues applied.

`query`: rows of a block, each along the depth.  `key`: panels of NR keys, k-major, for the first
product.  `value`: panels of NR columns for the second.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.attention.frame import Frame, linear_position
from kernel_gen.codegen.cpu.attention.pairs import joined_steps
from kernel_gen.codegen.cpu.attention.problem import Problem
from kernel_gen.codegen.cpu.attention.tiling import Operand
from kernel_gen.codegen.cpu.matmul.fused import high_halves, join_halves
from kernel_gen.codegen.cpu.matmul.transpose import transpose_function
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, Linear
from kernel_gen.codegen.flat.phases import closure
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm, FloorDiv, Mod


@dataclass(frozen=True, slots=True)
class InPlace:
    """An operand as it lies in memory: rows of `row_stride` elements, 1 between neighbours.

    `stored`: narrow floats, which the products widen as they read them; None: as multiplied.
    """

    buffer: int
    offset: Linear
    row_stride: int
    stored: DType | None


def in_place(problem: Problem, statement: int, along: str) -> InPlace | None:
    """A plain load that walks `along` with stride one, and keys with a constant stride."""
    load = problem.nest.statements[statement]
    if not isinstance(load, FlatLoad) or load.guards or load.at.statements():
        return None
    kept = problem.nest.buffers[load.buffer].type.dtype
    if not kept.is_float or kept.compute is not problem.dtype:
        return None
    names = {along, problem.keys.name}
    inside = [t for t, _ in load.at.terms if isinstance(t, FloorDiv | Mod)]
    if any(names & term.index.axes() for term in inside) or load.at.coeff(along).const != 1:
        return None
    rest = tuple((t, c) for t, c in load.at.terms if t not in [AxisTerm(n) for n in names])
    stride = load.at.coeff(problem.keys.name).const
    if stride is None:
        return None
    stored = None if kept is problem.dtype else kept
    return InPlace(load.buffer, Linear(rest, load.at.const), stride, stored)


def key_in_place(problem: Problem) -> InPlace | None:
    """The keys, where one axis is the whole depth."""
    return in_place(problem, problem.key, problem.depth[0].name) if _is_one(problem) else None


def _is_one(problem: Problem) -> bool:
    return len(problem.depth) == 1


def value_in_place(problem: Problem, lanes: int) -> InPlace | None:
    """The values, where their rows are whole vectors."""
    found = in_place(problem, problem.value, problem.cols.name)
    return found if problem.e % lanes == 0 else None


def place_function(frame: Frame, name: str, place: InPlace) -> str:
    """`const T *symbol_<name>(args, status, b)`: the first row of head b."""
    scope = frame.function(name, "gaf_i64 b", f"const {frame.element(place.stored)} *")
    frame.declare(scope, frame.problem.batch, "b")
    at = frame.emitter.addresses.offset(place.offset, scope)
    scope.add(f"return b{place.buffer} + {at};")
    return frame.finish(scope)


def query_function(frame: Frame) -> str:
    """Rows [m0, m0 + rows) and, up to a whole tile, rows of zeros."""
    p, ld = frame.problem, frame.tiling.padded(frame.tiling.depth(frame.problem))
    scope = frame.function("query", f"gaf_i64 b, gaf_i64 m0, gaf_i64 rows, {frame.scalar} *dst")
    frame.declare(scope, p.batch, "b")
    row = scope.open("for (gaf_i64 r = 0; r < rows; ++r) {")
    row.add("const gaf_i64 m = m0 + r;")
    frame.declare(row, p.rows, "m")
    last = p.depth[-1]
    with frame.loops(row, p.depth[:-1]) as inner:
        at = f"dst + r * {ld} + {linear_position(p.depth[:-1], _extent(last.extent))} + c"

        # a tail writes whole vectors: what follows is written later, or the row's padding
        def put(block: Scope) -> None:
            value = frame.operand(p.query, block)
            if p.rows:
                _fetch(frame, p.query, (p.rows[-1].name, frame.tiling.rows), block)
            if frame.tiling.key is Operand.PAIRS:
                narrow, half = high_halves(frame.unit, frame.vector, frame.tiling.lanes)
                at_half = f"(unsigned short *)(dst + r * {ld}) + c"
                block.add(f"*({half}u *)({at_half}) = {narrow}({value});")
            else:
                block.add(f"*({frame.vector}u *)({at}) = {value};")

        frame.vectors(inner, last, str(last.extent), put)
    row.close()
    scope.add(f"for (gaf_i64 r = rows; r % {frame.tiling.mr} != 0; ++r)")
    scope.add(f"  for (gaf_i64 k = 0; k < {ld}; ++k) dst[r * {ld} + k] = 0;")
    return frame.finish(scope)


def _fetch(frame: Frame, statement: int, ahead: tuple[str, int], scope: Scope) -> None:
    """What a load will read so many steps of an axis later, into the second-level cache."""
    load = frame.problem.nest.statements[statement]
    if not frame.tiling.ahead or not isinstance(load, FlatLoad):
        return
    if load.guards or load.at.statements():
        return
    axis, steps = ahead
    stride = load.at.coeff(axis).const
    if stride is None:
        return
    at = frame.emitter.addresses.offset(load.at, scope)
    scope.add(f"__builtin_prefetch(b{load.buffer} + {at} + {steps * stride}ll, 0, 2);")


def _extent(extent: object) -> int:
    assert isinstance(extent, int)
    return extent


def key_function(frame: Frame) -> str:
    """All panels of head b; keys behind the last one are zeros."""
    p, t = frame.problem, frame.tiling
    scope = frame.function("key", f"gaf_i64 b, {frame.scalar} *dst")
    frame.declare(scope, p.batch, "b")
    panel = scope.open(f"for (gaf_i64 t0 = 0; t0 < {p.t}; t0 += {t.nr}) {{")
    panel.add(f"const gaf_i64 rest = {p.t} - t0, cols = rest < {t.nr} ? rest : {t.nr};")
    panel.add(f"{frame.scalar} *panel = dst + t0 * {t.depth(p)}ll;")
    if _runs_along(p.nest, p.key, p.keys.name, p.depth[-1].name):
        _panel_along_keys(frame, panel)
    else:
        _panel_along_depth(frame, panel)
    panel.close()
    return frame.finish(scope)


def _runs_along(nest: FlatNest, root: int, axis: str, other: str) -> bool:
    """Whether loads behind a statement walk `axis` with stride one, and none `other`."""
    loads = [s for i in closure(nest, [root]) if isinstance(s := nest.statements[i], FlatLoad)]
    along = any(load.at.coeff(axis).const == 1 for load in loads)
    return along and not any(load.at.coeff(other).const == 1 for load in loads)


def _panel_along_keys(frame: Frame, panel: Scope) -> None:
    p, t = frame.problem, frame.tiling
    if t.key is Operand.PAIRS:
        panel.add(f"const gaf_i64 ld = {t.nr};")
        panel.add(f"if (cols < {t.nr})")
        panel.add(f"  for (int j = 0; j < {t.depth(p) * t.nr}; ++j) panel[j] = 0;")
        joined_steps(frame, panel, p.depth[0], p.key, (p.keys, "t0", "cols"))
        return
    with frame.loops(panel, p.depth) as step:
        step.add(f"{frame.scalar} *at = panel + ({linear_position(p.depth, 1)}) * {t.nr};")
        step.add(f"if (cols < {t.nr})")
        step.add(f"  for (int j = 0; j < {t.nr}; ++j) at[j] = 0;")

        def put(block: Scope) -> None:
            block.add(f"*({frame.vector}u *)(at + c) = {frame.operand(p.key, block)};")

        frame.vectors(step, p.keys, "cols", put, first="t0")


def _panel_along_depth(frame: Frame, panel: Scope) -> None:
    """Vectors along the depth for `lanes` keys at a time, transposed in registers."""
    p, t = frame.problem, frame.tiling
    last = p.depth[-1]
    transpose = transpose_function(frame.unit, frame.vector, t.lanes)
    columns = panel.open(f"for (gaf_i64 j0 = 0; j0 < {t.nr}; j0 += {t.lanes}) {{")
    columns.add(f"const gaf_i64 left = cols - j0; const int count = left < {t.lanes} ? (int)left")
    columns.add(f"    : {t.lanes};")

    def put(block: Scope) -> None:
        block.add(f"{frame.vector} t[{t.lanes}] = {{}};")
        axes = {p.keys.name: Binding("(t0 + j0 + i)")}
        walk = block.open("for (int i = 0; i < count; ++i) {", axes)
        walk.add(f"t[i] = {frame.operand(p.key, walk)};")
        _fetch(frame, p.key, (p.keys.name, t.lanes), walk)
        walk.close()
        block.add(f"{transpose}(t);")
        if t.key is Operand.PAIRS:
            join = join_halves(frame.unit, frame.vector, t.lanes)
            at = f"panel + (c / 2 + j) * {t.nr} + j0"
            end = f"({block.part} + 1) / 2" if block.part else str(t.lanes // 2)
            pair = f"{join}(t[2 * j], t[2 * j + 1])"
            block.add(f"for (int j = 0; j < {end}; ++j) *({frame.vector}u *)({at}) = {pair};")
            return
        base = linear_position(p.depth[:-1], _extent(last.extent))
        at = f"panel + ({base} + c + j) * {t.nr} + j0"
        end = block.part or str(t.lanes)
        block.add(f"for (int j = 0; j < {end}; ++j) *({frame.vector}u *)({at}) = t[j];")

    with frame.loops(columns, p.depth[:-1]) as outer:
        frame.vectors(outer, last, str(last.extent), put)
    columns.close()


def value_function(frame: Frame) -> str:
    """Panels of NR columns of all keys of head b; the last one in whole vectors."""
    p, t = frame.problem, frame.tiling
    scope = frame.function("value", f"gaf_i64 b, {frame.scalar} *dst")
    frame.declare(scope, p.batch, "b")
    panel = scope.open(f"for (gaf_i64 e0 = 0; e0 < {p.e}; e0 += {t.nr}) {{")
    panel.add(f"const gaf_i64 rest = {p.e} - e0, cols = rest < {t.nr} ? rest : {t.nr};")
    panel.add(f"const gaf_i64 ld = cols > {t.tail_nv(p) * t.lanes} ? {t.nr} : ")
    panel.add(f"    {t.tail_nv(p) * t.lanes};")
    if t.value is Operand.PAIRS:
        panel.add(f"{frame.scalar} *const panel = dst + e0 * {t.along_keys(p.t)}ll;")
        joined_steps(frame, panel, p.keys, p.value, (p.cols, "e0", "cols"))
        panel.close()
        return frame.finish(scope)
    name = p.keys.name
    head = f"for (gaf_i64 {name} = 0; {name} < {p.t}; ++{name}) {{"
    row = panel.open(head, {name: Binding(name)})

    def put(block: Scope) -> None:
        at = f"dst + e0 * {p.t}ll + {name} * ld + c"
        block.add(f"*({frame.vector}u *)({at}) = {frame.operand(p.value, block)};")

    frame.vectors(row, p.cols, "cols", put, first="e0")
    row.close()
    panel.close()
    return frame.finish(scope)
