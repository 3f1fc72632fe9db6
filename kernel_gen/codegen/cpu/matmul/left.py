"""`symbol_left`: rows [lo, hi) of the left operand, prologue applied, into packed rows."""

from __future__ import annotations

from kernel_gen.codegen.cpu.matmul.frame import Frame, linear_position
from kernel_gen.codegen.cpu.matmul.problem import extent
from kernel_gen.codegen.cpu.matmul.row_reduction import define_reductions
from kernel_gen.codegen.cpu.matmul.transpose import transpose_function
from kernel_gen.codegen.cpu.scope import Binding, Scope
from kernel_gen.ir.loopnest import Reduce


def left_function(frame: Frame) -> str:
    """Rows one by one; `lanes` rows at a time where memory runs along the rows."""
    p, ld = frame.problem, frame.tiling.left_ld(frame.problem)
    scope = frame.function("left", f"gaf_i64 b, gaf_i64 lo, gaf_i64 hi, {frame.scalar} *dst")
    frame.declare(scope, p.batch, "b")
    if _lies_across(frame):
        _columns_of_rows(frame, scope, ld)
    else:
        _row_by_row(frame, scope, ld)
    # rows that only fill up the last tile
    scope.add(f"for (gaf_i64 m = hi; (m - lo) % {frame.tiling.mr} != 0; ++m)")
    scope.add(f"  for (gaf_i64 k = 0; k < {ld}; ++k) dst[(m - lo) * {ld}ll + k] = 0;")
    return frame.finish(scope)


def _lies_across(frame: Frame) -> bool:
    p = frame.problem
    reduced = any(isinstance(p.nest.statements[s], Reduce) for s in p.left)
    return len(p.rows) == 1 and not reduced and frame.runs_along(p.product.lhs, p.rows, p.depth)


def _row_by_row(frame: Frame, scope: Scope, ld: int) -> None:
    p = frame.problem
    row = scope.open("for (gaf_i64 m = lo; m < hi; ++m) {")
    frame.declare(row, p.rows, "m")
    row.add(f"{frame.scalar} *row = dst + (m - lo) * {ld}ll;")
    define_reductions(frame, row)
    with frame.loops(row, p.depth[:-1]) as inner:
        last = p.depth[-1]
        at = f"row + {linear_position(p.depth[:-1], extent(last))} + c"

        # a tail writes whole vectors: what follows is written later, or the row's padding
        def put(block: Scope) -> None:
            value = frame.operand(p.product.lhs, block)
            block.add(f"*({frame.vector}u *)({at}) = {value};")

        frame.vectors(inner, last, str(extent(last)), "0", put)
    row.close()


def _columns_of_rows(frame: Frame, scope: Scope, ld: int) -> None:
    """Vectors along the rows for `lanes` steps of k, transposed in registers."""
    p, lanes = frame.problem, frame.tiling.lanes
    (rows,), last = p.rows, p.depth[-1]
    transpose = transpose_function(frame.emitter.unit, frame.vector, lanes)

    def put(block: Scope) -> None:
        count = block.part or str(lanes)
        with frame.loops(block, p.depth[:-1]) as outer:
            steps = outer.open(f"for (gaf_i64 k = 0; k < {extent(last)}; k += {lanes}) {{")
            steps.add(f"const gaf_i64 left = {extent(last)} - k;")
            steps.add(f"{frame.vector} t[{lanes}] = {{}};")
            walk = steps.open(
                f"for (int i = 0; i < (left < {lanes} ? left : {lanes}); ++i) {{",
                {last.name: Binding("(k + i)")},
            )
            walk.add(f"t[i] = {frame.operand(p.product.lhs, walk)};")
            walk.close()
            steps.add(f"{transpose}(t);")
            at = f"dst + (c + j) * {ld}ll + {linear_position(p.depth[:-1], extent(last))} + k"
            steps.add(f"for (int j = 0; j < {count}; ++j) *({frame.vector}u *)({at}) = t[j];")
            steps.close()

    frame.vectors(scope, rows, "(hi - lo)", "lo", put)
