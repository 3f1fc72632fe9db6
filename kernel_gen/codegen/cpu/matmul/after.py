"""`symbol_after`: the epilogue of one register tile, and the stores."""

from __future__ import annotations

from kernel_gen.codegen.cpu.emit import Scope
from kernel_gen.codegen.cpu.matmul.frame import Frame
from kernel_gen.codegen.cpu.ops import Value


def after_function(frame: Frame) -> str:
    """Row by row of the tile's sums (in the first-level cache), vector by vector."""
    p, nr = frame.problem, frame.tiling.nr
    parameters = (
        "gaf_i64 b, gaf_i64 m0, gaf_i64 rows, gaf_i64 slab, gaf_i64 n0, gaf_i64 cols, "
        f"const {frame.scalar} *tile"
    )
    scope = frame.function("after", parameters)
    frame.declare(scope, p.batch, "b")
    frame.declare(scope, p.cols[:-1], "slab")
    row = scope.open("for (gaf_i64 r = 0; r < rows; ++r) {")
    row.add("const gaf_i64 m = m0 + r;")
    frame.declare(row, p.rows, "m")
    product = p.product.dtype

    if not p.cols:  # one column: sums are scalars
        row.define(p.contract, Value(f"tile[r * {nr}]", product, vector=False))
        for store in frame.emitter.nest.stores:
            frame.emitter.store(store, row)
        row.close()
        return frame.finish(scope)

    def put(block: Scope) -> None:
        block.add(
            f"const {frame.vector} product = *(const {frame.vector}u *)(tile + r * {nr} + c);"
        )
        block.define(p.contract, Value("product", product, vector=True))
        for store in frame.emitter.nest.stores:
            frame.emitter.store(store, block)

    frame.vectors(row, p.cols[-1], "cols", "n0", put)
    row.close()
    return frame.finish(scope)
