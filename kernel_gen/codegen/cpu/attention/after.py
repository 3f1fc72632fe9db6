"""`symbol_after`: results of a block of rows divided by their sums, the epilogue, the stores."""

from __future__ import annotations

from kernel_gen.codegen.cpu.attention.frame import Frame
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value


def after_function(frame: Frame) -> str:
    """Row by row, vector by vector. A row that saw no key has the sum 0: its results are sums of
    values times 0 already, or NaN where the softmax is not safe."""
    p, t, s = frame.problem, frame.tiling, frame.scalar
    parameters = f"gaf_i64 b, gaf_i64 m0, gaf_i64 rows, const {s} *sums, const {s} *totals"
    scope = frame.function("after", parameters)
    frame.declare(scope, p.batch, "b")
    row = scope.open("for (gaf_i64 r = 0; r < rows; ++r) {")
    row.add("const gaf_i64 m = m0 + r;")
    frame.declare(row, p.rows, "m")
    row.add(f"const {s} factor = {'totals[r] == 0 ? 1 : ' if p.safe else ''}1 / totals[r];")

    def put(block: Scope) -> None:
        at = f"sums + r * {t.padded(p.e)} + c"
        block.add(f"const {frame.vector} result = *(const {frame.vector} *)({at}) * factor;")
        block.define(p.second, Value("result", p.dtype, vector=True))
        for store in p.nest.stores:
            frame.emitter.store(store, block)

    frame.vectors(row, p.cols, str(p.e), put)
    row.close()
    return frame.finish(scope)
