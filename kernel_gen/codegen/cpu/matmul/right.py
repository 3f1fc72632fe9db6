"""`symbol_right<section>`: column tiles [lo, hi) of a right operand, prologue applied, packed.

A packed tile is k rows of `ld` elements, `ld` being NR or, for the last tile of a slab, its whole
vectors; columns behind the end hold values that no one stores.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.frame import Frame, linear_position
from kernel_gen.codegen.cpu.matmul.fused import join_halves
from kernel_gen.codegen.cpu.matmul.transpose import transpose_function
from kernel_gen.codegen.cpu.scope import Binding, Scope


def right_function(frame: Frame, section: int) -> str:
    p, t = frame.problem, frame.tiling
    root = p.section(section).rhs
    scope = frame.function(
        f"right{section}", f"gaf_i64 b, gaf_i64 lo, gaf_i64 hi, {frame.scalar} *dst"
    )
    frame.declare(scope, p.batch, "b")
    tiles, tail = t.slab_tiles(p), t.tail_nv(p) * t.lanes
    tile = scope.open("for (gaf_i64 p = lo; p < hi; ++p) {")
    tile.add(f"const gaf_i64 slab = p / {tiles}, n0 = p % {tiles} * {t.nr};")
    tile.add(f"const gaf_i64 rest = {p.inner_cols} - n0, cols = rest < {t.nr} ? rest : {t.nr};")
    tile.add(f"const gaf_i64 ld = cols > {tail} ? {t.nr} : {tail};")
    tile.add(f"{frame.scalar} *panel = dst + (p - lo) * {t.packed(p.k) * t.nr}ll;")
    frame.declare(tile, p.cols[:-1], "slab")
    if frame.runs_along(root, p.depth, p.cols):
        _along_depth(frame, tile, root)
    elif t.pairs:
        _pairs_along_columns(frame, tile, root)
    else:
        _along_columns(frame, tile, root)
    tile.close()
    return frame.finish(scope)


def _along_columns(frame: Frame, tile: Scope, root: int) -> None:
    p = frame.problem
    with frame.loops(tile, p.depth) as step:
        step.add(f"{frame.scalar} *at = panel + ({linear_position(p.depth, 1)}) * ld;")

        def put(block: Scope) -> None:
            block.add(f"*({frame.vector}u *)(at + c) = {frame.operand(root, block)};")

        frame.vectors(step, p.cols[-1] if p.cols else None, "cols", "n0", put)


def _pairs_along_columns(frame: Frame, tile: Scope, root: int) -> None:
    """Two rows of B at a time; behind an odd last one there are zeros."""
    p, last = frame.problem, frame.problem.depth[-1]
    join = join_halves(frame.emitter.unit, frame.vector, frame.tiling.lanes)
    end = extent(last)

    def rows(head: str, second: bool) -> None:
        step = tile.open(head)
        step.add(f"{frame.scalar} *at = panel + k / 2 * ld;")

        def put(block: Scope) -> None:
            values = []
            for place in ("k", "(k + 1)") if second else ("k",):
                row = block.inline({last.name: Binding(place)})
                values.append(frame.operand(root, row))
            values += [f"({frame.vector}){{}}"] * (2 - len(values))
            block.add(f"*({frame.vector}u *)(at + c) = {join}({', '.join(values)});")

        frame.vectors(step, p.cols[-1] if p.cols else None, "cols", "n0", put)
        step.close()

    rows(f"for (gaf_i64 k = 0; k + 2 <= {end}; k += 2) {{", second=True)
    if end % 2:
        rows(f"for (gaf_i64 k = {end - 1}; k < {end}; ++k) {{", second=False)


def _along_depth(frame: Frame, tile: Scope, root: int) -> None:
    """Vectors along k for `lanes` columns at a time, transposed in registers.

    Each of these columns is read as one stream from its begin to its end.
    """
    p, lanes = frame.problem, frame.tiling.lanes
    last = p.depth[-1]
    transpose = transpose_function(frame.emitter.unit, frame.vector, lanes)
    binding = {p.cols[-1].name: Binding("(n0 + j0 + i)")} if p.cols else {}
    columns = tile.open(f"for (gaf_i64 j0 = 0; j0 < ld; j0 += {lanes}) {{")
    columns.add(f"const int count = cols - j0 < {lanes} ? (int)(cols - j0) : {lanes};")

    def put(block: Scope) -> None:
        block.add(f"{frame.vector} t[{lanes}] = {{}};")
        walk = block.open("for (int i = 0; i < count; ++i) {", dict(binding))
        walk.add(f"t[i] = {frame.operand(root, walk)};")
        walk.close()
        block.add(f"{transpose}(t);")
        if frame.tiling.pairs:
            join = join_halves(frame.emitter.unit, frame.vector, lanes)
            at = "panel + (c / 2 + j) * ld + j0"
            end = f"({block.part} + 1) / 2" if block.part else str(lanes // 2)
            block.add(
                f"for (int j = 0; j < {end}; ++j)"
                f" *({frame.vector}u *)({at}) = {join}(t[2 * j], t[2 * j + 1]);"
            )
            return
        at = f"panel + ({linear_position(p.depth[:-1], extent(last))} + c + j) * ld + j0"
        end = block.part or str(lanes)
        block.add(f"for (int j = 0; j < {end}; ++j) *({frame.vector}u *)({at}) = t[j];")

    with frame.loops(columns, p.depth[:-1]) as outer:
        frame.vectors(outer, last, str(extent(last)), "0", put)
    columns.close()
