"""An epilogue that reduces along the product's columns, or some of their axes (a norm of each
head): a norm, a softmax, a row's maximum.

Whole rows of sums wait in a *panel*, from which the phases of a row kernel finish them:

    rows, batch   each thread's own panel of MC row tiles, still in cache when its rows are finished
    cols, depth   one panel of all rows, shared: sums are made by many threads, a barrier, rows

The nest of the second part is the first one with each product read from the panel. Its columns are
padded to whole tiles, so that register tiles are stored without masks:

    0 load x[i, k]  1 load w[k, j]  2 contract 0 1 over k  3 reduce amax 2 over j  …
    2 load panel[i·ld + j]                                 3 reduce amax 2 over j  …
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernel_gen.codegen.cpu.axes import elems, extent
from kernel_gen.codegen.cpu.matmul.frame import Frame
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.tiling import Tiling
from kernel_gen.codegen.cpu.reductions.keep import POLICIES, Kept, kept_values
from kernel_gen.codegen.cpu.reductions.rowconfig import RowConfig
from kernel_gen.codegen.cpu.reductions.rows import RowEmitter
from kernel_gen.codegen.cpu.scratch import Scratch
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.vectors.types import Lanes
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStatement, Linear, Poly, flatten
from kernel_gen.codegen.flat.phases import Phase, plan_phases
from kernel_gen.errors import Refusal
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.loopnest import Buffer, BufferRole, Compute
from kernel_gen.ir.types import TensorType

_UNROLL = 2  # vectors of a row side by side
_WIDEST = 8  # bytes of a kept value, at most
_LIMIT = 64 << 20  # bytes of one panel


@dataclass(frozen=True, slots=True)
class Panel:
    """Where sums wait: `ld` elements a row, a slab of columns `slab` elements, a section all rows
    of one product of the nest. The element of row r and column (s, c) is r·ld + s·slab + c."""

    ld: int
    slab: int
    rows: int  # rows that a panel holds

    @property
    def section(self) -> int:
        return self.rows * self.ld


def panel(problem: Problem, tiling: Tiling) -> Panel:
    """The panel of one thread, or of all of them where they share out columns."""
    slab = tiling.slab_tiles(problem) * tiling.nr
    ld = slab * max(1, tiling.slabs(problem))
    step = 512 // problem.product.dtype.bytes
    if ld % step == 0:  # rows of a tile would fall into few sets of the cache
        ld += tiling.lanes
    all_rows = tiling.row_tiles(problem)
    if tiling.split.meets_rows:
        return Panel(ld, slab, max(problem.b, 1) * problem.m)
    return Panel(ld, slab, min(tiling.mc, all_rows) * tiling.mr)


def panel_bytes(problem: Problem, tiling: Tiling) -> int:
    """Bytes of the sums that wait; 0 if the epilogue needs no whole rows."""
    if not problem.finishes_rows:
        return 0
    elements = panel(problem, tiling).section * problem.sections
    return elements * problem.product.dtype.bytes


def refuse_rows(problem: Problem) -> Refusal | None:
    """Why rows of sums cannot be finished one by one."""
    if not problem.finishes_rows:
        return None
    phases = plan_phases(_rest(problem, Panel(1, 1, 1)))
    if len(phases) > 1:
        sentence = f"after the product: {len(phases)} passes, one over its rows is supported"
        return Refusal("reduction-beside-product", sentence)
    kept = {axis.name for axis in (*problem.batch, *problem.rows, *problem.cols)}
    inner, last = set(phases[0].inner), problem.cols[-1].name
    if last in inner and set(phases[0].outer) == kept - inner:
        return None
    sentence = f"after the product: rows over {phases[0].inner} of its columns, which end in {last}"
    return Refusal("reduction-beside-product", sentence)


def refuse_panel(problem: Problem, tiling: Tiling) -> Refusal | None:
    """Why a tiling's panel is too large."""
    nbytes = panel_bytes(problem, tiling)
    if nbytes <= _LIMIT:
        return None
    return Refusal("row-too-long", f"sums of whole rows take {nbytes} bytes")


def policies(problem: Problem) -> tuple[str, ...]:
    """Choices of what is kept along a row from stage to stage, those that differ."""
    nest = _rest(problem, Panel(1, 1, 1))
    (phase,) = plan_phases(nest)
    seen: dict[tuple[Kept, ...], str] = {}
    for policy in POLICIES:
        seen.setdefault(_kept(problem, nest, phase, policy), policy)
    return tuple(seen.values())


def kept_bytes(problem: Problem, tiling: Tiling) -> int:
    """Bytes of a thread's kept values of one row, at most."""
    if not problem.finishes_rows:
        return 0
    nest = _rest(problem, Panel(1, 1, 1))
    (phase,) = plan_phases(nest)
    slots = {k.slot for k in _kept(problem, nest, phase, tiling.keep)}
    inner = tuple(axis for axis in problem.cols if axis.name in phase.inner)
    last = extent(inner[-1])
    padded = elems(inner[:-1]) * (-(-last // tiling.lanes) * tiling.lanes)
    return len(slots) * (-(-padded * _WIDEST // 64) * 64)


def rows_function(frame: Frame) -> str:
    """`symbol_rows(args, status, lo, hi, origin, panel, mine)`: rows [lo, hi) of all products,
    whose sums stand in a panel that begins with row `origin`."""
    p, t = frame.problem, frame.tiling
    where = panel(p, t)
    nest = _rest(p, where)
    (phase,) = plan_phases(nest)
    lanes = Lanes(t.lanes, max(4, p.product.dtype.bytes))
    emitter = Emitter(nest, frame.emitter.unit, lanes)
    parameters = f"gaf_i64 lo, gaf_i64 hi, gaf_i64 origin, const {frame.scalar} *panel, char *mine"
    scope = frame.function("rows", parameters)
    scope.add("(void)mine;")
    for section in range(p.sections):
        buffer = len(p.nest.buffers) + section
        scope.add(f"const {frame.scalar} *const b{buffer} = panel + {section * where.section}ll;")
    row = scope.open("for (gaf_i64 q = lo; q < hi; ++q) {")
    row.add(f"const gaf_i64 b = q / {max(p.m, 1)}, m = q % {max(p.m, 1)};")
    frame.declare(row, p.batch, "b")
    frame.declare(row, p.rows, "m")
    kept = _kept(p, nest, phase, t.keep)
    config = RowConfig(p.cols[-1].name, unroll=_UNROLL, kept=kept)
    with frame.loops(row, tuple(a for a in p.cols if a.name in phase.outer)) as one:
        RowEmitter(emitter, phase, config, Scratch(), "rows").emit(one, [{}], None)
    row.close()
    return frame.finish(scope)


def _kept(problem: Problem, nest: FlatNest, phase: Phase, policy: str) -> tuple[Kept, ...]:
    """Kept values that vary along the vectors."""
    live, axis = nest.statement_axes(), problem.cols[-1].name
    return tuple(k for k in kept_values(nest, phase, policy) if axis in live[k.statement])


def _rest(problem: Problem, where: Panel) -> FlatNest:
    """What is left after the products: they are loads; statements of their operands are gone."""
    flat = flatten(problem.nest)
    statements: list[FlatStatement] = list(flat.statements)
    for position in set(range(len(statements))) - set(problem.after):
        # numbers of the others stay as they are
        statements[position] = Compute("const", (), problem.product.dtype, attrs(value=0))
    kind = TensorType(problem.product.dtype, (where.section,))
    for section, position in enumerate(problem.contracts):
        buffer, at = len(flat.buffers) + section, _place(problem, where)
        statements[position] = FlatLoad(buffer, at, problem.product.dtype)
    panels = (Buffer(kind, BufferRole.INPUT),) * problem.sections
    return replace(flat, statements=tuple(statements), buffers=(*flat.buffers, *panels))


def _place(problem: Problem, where: Panel) -> Linear:
    """The offset of a sum in a panel that begins with row `origin`, a variable of the kernel."""
    terms: list[tuple[str, int]] = [(problem.cols[-1].name, 1)]
    terms += _steps([(a.name, extent(a)) for a in problem.cols[:-1]], where.slab)
    terms += _steps([(a.name, extent(a)) for a in (*problem.batch, *problem.rows)], where.ld)
    places = tuple((AxisTerm(name), Poly.of(step)) for name, step in terms if step)
    return Linear(places, Poly(((("origin",), -where.ld),)))


def _steps(axes: list[tuple[str, int]], step: int) -> list[tuple[str, int]]:
    """Row-major steps of axes, the innermost of `step`: [(i, 3), (j, 4)], 10 -> i: 40, j: 10."""
    sizes = [size for _, size in axes]
    return [(name, step * math.prod(sizes[i + 1 :])) for i, (name, _) in enumerate(axes)]
