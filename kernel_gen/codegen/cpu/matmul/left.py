"""`symbol_left`: rows [lo, hi) of the left operand, prologue applied, into packed rows.

Packed: [block of k][row][k within the block], so that the rows which one block of the product
reads lie next to each other: few pages, and all sets of the caches alike.

Where the depth is split, a call packs the steps [k0, k1) alone, as one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.frame import Frame, linear_position
from kernel_gen.codegen.cpu.matmul.fused import high_halves
from kernel_gen.codegen.cpu.matmul.row_reduction import define_reductions
from kernel_gen.codegen.cpu.matmul.transpose import transpose_function
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.ir.loopnest import Reduce


def left_function(frame: Frame) -> str:
    """Rows one by one; `lanes` rows at a time where memory runs along the rows."""
    steps = ", gaf_i64 k0, gaf_i64 k1" if frame.tiling.splits_depth else ""
    scope = frame.function("left", f"gaf_i64 b, gaf_i64 lo, gaf_i64 hi{steps}, {frame.scalar} *dst")
    frame.declare(scope, frame.problem.batch, "b")
    if _lies_across(frame):
        _columns_of_rows(frame, scope)
    else:
        _row_by_row(frame, scope)
    _fill_up(frame, scope)
    return frame.finish(scope)


def _fill_up(frame: Frame, scope: Scope) -> None:
    """Zeros for rows that only fill up the last tile."""
    p, t = frame.problem, frame.tiling
    ld = t.left_ld(p)
    row = scope.open(f"for (gaf_i64 m = hi; (m - lo) % {t.mr} != 0; ++m) {{")
    with _blocks(frame, row) as block:
        block.add(f"for (gaf_i64 k = 0; k < {ld}; ++k) base[(m - lo) * {ld}ll + k] = 0;")
    row.close()


def _lies_across(frame: Frame) -> bool:
    p = frame.problem
    reduced = any(isinstance(p.nest.statements[s], Reduce) for s in p.left)
    return len(p.rows) == 1 and not reduced and frame.runs_along(p.product.lhs, p.rows, p.depth)


@contextmanager
def _blocks(frame: Frame, scope: Scope) -> Iterator[Scope]:
    """A loop over the blocks of k. `base` is where a block's rows begin, `kb` its first step and
    `steps` how many it has, along the innermost axis of the depth."""
    p, t = frame.problem, frame.tiling
    blocks, end = t.left_blocks(p), extent(p.depth[-1])
    if blocks == 1:
        block = scope.open("{")
        first, steps = ("k0", "k1 - k0") if _cuts_vectors(frame) else ("0", str(end))
        block.add(f"const gaf_i64 kb = {first}, steps = {steps}; (void)kb; (void)steps;")
        block.add(f"{frame.scalar} *const base = dst;")
    else:
        block = scope.open(f"for (gaf_i64 kb = 0; kb < {end}; kb += {t.kc}) {{")
        block.add(f"const gaf_i64 left = {end} - kb, steps = left < {t.kc} ? left : {t.kc};")
        step = t.left_rows(p) * t.left_ld(p)
        block.add(f"{frame.scalar} *const base = dst + kb / {t.kc} * {step}ll; (void)steps;")
    yield block
    block.close()


def _cuts_vectors(frame: Frame) -> bool:
    """Whether the axis along which vectors run is the one that is cut where the depth is split."""
    return frame.tiling.splits_depth and len(frame.problem.depth) == 1


def _begin(frame: Frame) -> str:
    """Where vectors along the innermost axis of the depth begin in a packed row."""
    p = frame.problem
    begin = linear_position(p.depth[:-1], extent(p.depth[-1]))
    cut = frame.tiling.splits_depth and len(p.depth) > 1
    return f"{begin} - k0" if cut else begin


def _whole(frame: Frame) -> bool:
    """Whether all blocks are whole vectors along k."""
    t, end = frame.tiling, extent(frame.problem.depth[-1])
    cut = t.left_blocks(frame.problem) > 1
    return end % t.lanes == 0 and not (cut and t.kc % t.lanes)


def _put(frame: Frame, at: tuple[str, str], value: str) -> str:
    """Stores a vector along k at a row's begin and a number of steps, as elements or as bf16."""
    row, step = at
    if not frame.tiling.pairs:
        return f"*({frame.vector}u *)({row} + {step}) = {value};"
    narrow, half = high_halves(frame.emitter.unit, frame.vector, frame.tiling.lanes)
    return f"*({half}u *)((unsigned short *){row} + {step}) = {narrow}({value});"


def _row_by_row(frame: Frame, scope: Scope) -> None:
    p, ld = frame.problem, frame.tiling.left_ld(frame.problem)
    row = scope.open("for (gaf_i64 m = lo; m < hi; ++m) {")
    frame.declare(row, p.rows, "m")
    define_reductions(frame, row)
    last = p.depth[-1]
    at = ("row", f"{_begin(frame)} + c")

    # a tail writes whole vectors: what follows is written later, or the row's padding
    def put(block: Scope) -> None:
        block.add(_put(frame, at, frame.operand(p.product.lhs, block)))

    with _blocks(frame, row) as block:
        block.add(f"{frame.scalar} *const row = base + (m - lo) * {ld}ll;")
        with frame.steps(block, p.depth[:-1], cut=frame.tiling.splits_depth) as inner:
            frame.vectors(inner, last, "steps", "kb", put, whole=_whole(frame))
    row.close()


def _columns_of_rows(frame: Frame, scope: Scope) -> None:
    """Vectors along the rows for `lanes` steps of k, transposed in registers."""
    p, lanes, ld = frame.problem, frame.tiling.lanes, frame.tiling.left_ld(frame.problem)
    (rows,), last = p.rows, p.depth[-1]
    transpose = transpose_function(frame.emitter.unit, frame.vector, lanes)
    cut = frame.tiling.splits_depth

    def put(group: Scope) -> None:
        count = group.part or str(lanes)
        with (
            _blocks(frame, group) as block,
            frame.steps(block, p.depth[:-1], cut=cut) as outer,
        ):
            steps = outer.open(f"for (gaf_i64 k = 0; k < steps; k += {lanes}) {{")
            steps.add("const gaf_i64 rest = steps - k;")
            steps.add(f"{frame.vector} t[{lanes}] = {{}};")
            walk = steps.open(
                f"for (int i = 0; i < (rest < {lanes} ? rest : {lanes}); ++i) {{",
                {last.name: Binding("(kb + k + i)")},
            )
            walk.add(f"t[i] = {frame.operand(p.product.lhs, walk)};")
            walk.close()
            steps.add(f"{transpose}(t);")
            at = (f"(base + (c + j) * {ld}ll)", f"{_begin(frame)} + k")
            steps.add(f"for (int j = 0; j < {count}; ++j) {_put(frame, at, 't[j]')}")
            steps.close()

    frame.vectors(scope, rows, "(hi - lo)", "lo", put)
