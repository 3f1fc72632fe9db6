"""`symbol_right<section>`: column tiles [lo, hi) of a right operand, prologue applied, packed.

A packed tile is k rows of `ld` elements, `ld` being NR or, for the last tile of a slab, its whole
vectors; columns behind the end hold values that no one stores. Where the depth is split, a call
packs the steps [k0, k1) alone.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.frame import Frame, linear_position
from kernel_gen.codegen.cpu.matmul.fused import join_halves
from kernel_gen.codegen.cpu.matmul.transpose import transpose_function
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.vectors.moves import store_function


def right_function(frame: Frame, section: int) -> str:
    p, t = frame.problem, frame.tiling
    root = p.section(section).rhs
    steps = ", gaf_i64 k0, gaf_i64 k1" if t.cuts_right else ""
    scope = frame.function(
        f"right{section}", f"gaf_i64 b, gaf_i64 lo, gaf_i64 hi{steps}, {frame.scalar} *dst"
    )
    frame.declare(scope, p.batch, "b")
    tiles, tail = t.slab_tiles(p), t.tail_nv(p) * t.lanes
    tile = scope.open("for (gaf_i64 p = lo; p < hi; ++p) {")
    tile.add(f"const gaf_i64 slab = p / {tiles}, n0 = p % {tiles} * {t.nr};")
    tile.add(f"const gaf_i64 rest = {t.slab_cols(p)} - n0, cols = rest < {t.nr} ? rest : {t.nr};")
    tile.add(f"const gaf_i64 ld = cols > {tail} ? {t.nr} : {tail};")
    tile.add(f"{frame.scalar} *panel = dst + (p - lo) * {t.packed(t.right_depth(p)) * t.nr}ll;")
    if frame.runs_along(root, p.depth, p.cols) and not _steps_of_two(frame, root):
        if not t.joined:
            frame.declare(tile, p.cols[:-1], "slab")
        _along_depth(frame, tile, root)
    else:
        with frame.runs(tile) as run:
            (_pairs_along_columns if t.pairs else _along_columns)(frame, run, root)
    tile.close()
    return frame.finish(scope)


def _steps_of_two(frame: Frame, root: int) -> bool:
    """Whether every second element along the columns is nearer than few along the depth."""
    p = frame.problem
    return extent(p.depth[-1]) < frame.tiling.lanes and frame.steps_along(root, p.cols, 2)


def _along_columns(frame: Frame, run: Scope, root: int) -> None:
    p, cut = frame.problem, frame.tiling.cuts_right
    with frame.steps(run, p.depth, cut=cut) as step:
        place = linear_position(p.depth, 1) + (" - k0" if cut else "")
        step.add(f"{frame.scalar} *at = panel + ({place}) * ld;")
        frame.columns(
            step, lambda block, place: _put(frame, block, place, frame.operand(root, block))
        )


def _put(frame: Frame, block: Scope, place: str, value: str) -> None:
    """A vector of a row of the panel. What a tail writes over its end is written again by the next
    run; over the end of the row there may be what was written before."""
    whole = f"*({frame.vector}u *)(at + {place}) = {value};"
    if not (block.part and frame.tiling.joined):
        block.add(whole)
        return
    store = store_function(
        frame.emitter.unit, frame.problem.product.dtype, frame.emitter.lanes, partial=True
    )
    block.add(f"if ({place} + {frame.tiling.lanes} <= ld) {whole}")
    block.add(f"else {store}(at + {place}, {value}, {block.part});")


def _pairs_along_columns(frame: Frame, run: Scope, root: int) -> None:
    """Two rows of B at a time; behind an odd last one there are zeros."""
    last, cut = frame.problem.depth[-1], frame.tiling.cuts_right
    join = join_halves(frame.emitter.unit, frame.vector, frame.tiling.lanes)
    begin, end = ("k0", "k1") if cut else ("0", str(extent(last)))

    def rows(head: str, second: bool) -> None:
        step = run.open(head)
        step.add(f"{frame.scalar} *at = panel + (k - {begin}) / 2 * ld;")

        def put(block: Scope, place: str) -> None:
            values = []
            for k in ("k", "(k + 1)") if second else ("k",):
                row = block.inline({last.name: Binding(k)})
                values.append(frame.operand(root, row))
            values += [f"({frame.vector}){{}}"] * (2 - len(values))
            _put(frame, block, place, f"{join}({', '.join(values)})")

        frame.columns(step, put)
        step.close()

    rows(f"for (gaf_i64 k = {begin}; k + 2 <= {end}; k += 2) {{", second=True)
    if extent(last) % 2:
        rows(f"for (gaf_i64 k = {end} - ({end} - {begin}) % 2; k < {end}; ++k) {{", second=False)


def _along_depth(frame: Frame, tile: Scope, root: int) -> None:
    """Vectors along k for `lanes` columns at a time, transposed in registers.

    Each of these columns is read as one stream from its begin to its end.
    """
    p, lanes = frame.problem, frame.tiling.lanes
    last, cut = p.depth[-1], frame.tiling.cuts_right
    cut_outside = cut and len(p.depth) > 1
    transpose = transpose_function(frame.emitter.unit, frame.vector, lanes)
    joined = frame.tiling.joined
    binding = {p.cols[-1].name: Binding("(n0 + j0 + i)")} if p.cols and not joined else {}
    columns = tile.open(f"for (gaf_i64 j0 = 0; j0 < ld; j0 += {lanes}) {{")
    columns.add(f"const int count = cols - j0 < {lanes} ? (int)(cols - j0) : {lanes};")

    def put(block: Scope) -> None:
        block.add(f"{frame.vector} t[{lanes}] = {{}};")
        walk = block.open("for (int i = 0; i < count; ++i) {", dict(binding))
        if joined:
            frame.declare(walk, p.cols, "(n0 + j0 + i)")
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
        outer = linear_position(p.depth[:-1], extent(last)) + (" - k0" if cut_outside else "")
        at = f"panel + ({outer} + c + j) * ld + j0"
        end = block.part or str(lanes)
        block.add(f"for (int j = 0; j < {end}; ++j) *({frame.vector}u *)({at}) = t[j];")

    with frame.steps(columns, p.depth[:-1], cut=cut) as walk:
        begin, end = ("k0", "(k1 - k0)") if cut and not cut_outside else ("0", str(extent(last)))
        frame.vectors(walk, last, end, begin, put)
    columns.close()
