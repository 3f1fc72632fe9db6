"""`symbol_after`: the epilogue of one register tile, and the stores; or, where the epilogue needs
whole rows, the tile's way into the panel (see `row_epilogue`)."""

from __future__ import annotations

from kernel_gen.codegen.cpu.matmul.frame import Frame
from kernel_gen.codegen.cpu.matmul.row_epilogue import panel
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value


def after_function(frame: Frame) -> str:
    """Row by row of the tile's sums (in the first-level cache), vector by vector."""
    p = frame.problem
    parameters = (
        "gaf_i64 b, gaf_i64 m0, gaf_i64 rows, gaf_i64 slab, gaf_i64 n0, gaf_i64 cols, "
        f"const {frame.scalar} *tile"
    )
    if p.finishes_rows:
        return _into_panel(frame, parameters)
    scope = frame.function("after", parameters)
    frame.declare(scope, p.batch, "b")

    def put(block: Scope, place: str) -> None:
        _define_vectors(frame, block, place)
        _store_all(frame, block)

    with frame.runs(scope) as run:
        row = run.open("for (gaf_i64 r = 0; r < rows; ++r) {")
        row.add("const gaf_i64 m = m0 + r;")
        frame.declare(row, p.rows, "m")
        if p.cols:
            frame.columns(row, put)
        else:  # one column: sums are scalars
            _define_scalars(frame, row)
            _store_all(frame, row)
        row.close()
    return frame.finish(scope)


def _into_panel(frame: Frame, parameters: str) -> str:
    """The sums as they are, to where whole rows of them wait."""
    p, where, kind = frame.problem, panel(frame.problem, frame.tiling), frame.vector
    scope = frame.function("after", f"{parameters}, gaf_i64 origin, {frame.scalar} *panel")
    row = scope.open("for (gaf_i64 r = 0; r < rows; ++r) {")
    at = f"(b * {p.m}ll + m0 + r - origin) * {where.ld}ll + slab * {where.slab}ll + n0"
    row.add(f"{frame.scalar} *const line = panel + {at};")
    # whole vectors: columns of the panel are padded to whole tiles
    vector = row.open(f"for (gaf_i64 c = 0; c < cols; c += {frame.tiling.lanes}) {{")
    for section in range(p.sections):
        to = f"*({kind}u *)(line + {section * where.section}ll + c)"
        vector.add(f"{to} = *(const {kind}u *)(tile + {_at(frame, section)} + c);")
    vector.close()
    row.close()
    return frame.finish(scope)


def _at(frame: Frame, section: int) -> str:
    """Position in the sums of row r of a section's tile."""
    t = frame.tiling
    return f"{section * t.mr * t.nr} + r * {t.nr}"


def _define_scalars(frame: Frame, scope: Scope) -> None:
    p = frame.problem
    for section, position in enumerate(p.contracts):
        scope.define(position, Value(f"tile[{_at(frame, section)}]", p.product.dtype, False))


def _define_vectors(frame: Frame, scope: Scope, place: str) -> None:
    p, vector = frame.problem, frame.vector
    for section, position in enumerate(p.contracts):
        name = f"product{section}"
        at = _at(frame, section)
        scope.add(f"const {vector} {name} = *(const {vector}u *)(tile + {at} + {place});")
        scope.define(position, Value(name, p.product.dtype, vector=True))


def _store_all(frame: Frame, scope: Scope) -> None:
    for store in frame.emitter.nest.stores:
        frame.emitter.store(store, scope)
