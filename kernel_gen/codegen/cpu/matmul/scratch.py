"""How many bytes of scratch a matmul kernel needs, and for what."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.row_epilogue import kept_bytes, panel_bytes
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split, Tiling
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import Reduce

ALIGN = 64
_MOST_SUMS = 64 << 20  # bytes of the parts of all sums


@dataclass(frozen=True, slots=True)
class Scratch:
    """Bytes of the parts: those common to all threads, then each thread's own, in this order."""

    shared_left: int
    shared_right: int
    own_left: int
    own_right: int
    own_tiles: int
    shared_panel: int = 0
    own_panel: int = 0
    own_kept: int = 0
    shared_sums: int = 0

    @property
    def shared(self) -> int:
        return self.shared_left + self.shared_right + self.shared_panel + self.shared_sums

    @property
    def own(self) -> int:
        return self.own_left + self.own_right + self.own_tiles + self.own_panel + self.own_kept


def scratch(problem: Problem, tiling: Tiling) -> Scratch:
    if tiling.splits_depth:
        return _by_depth(problem, tiling)
    rows, cols = tiling.row_tiles(problem), tiling.col_tiles(problem)
    by_cols = tiling.split is Split.COLS
    left = tiling.left.is_prepared
    right = tiling.right is Operand.CALL
    batch = max(problem.b, 1)
    stacked = batch * problem.sections
    own_cols = cols if tiling.split is Split.BATCH else min(tiling.nc, cols)
    shares_right = right and tiling.split is Split.ROWS
    waiting = _rounded(panel_bytes(problem, tiling))
    return Scratch(
        shared_left=batch * left_bytes(problem, tiling, rows) if left and by_cols else 0,
        shared_right=stacked * right_bytes(problem, tiling, cols) if shares_right else 0,
        own_left=left_bytes(problem, tiling, min(tiling.mc, rows)) if left and not by_cols else 0,
        own_right=problem.sections * right_bytes(problem, tiling, own_cols)
        if right and not shares_right
        else 0,
        own_tiles=_tile_bytes(problem, tiling),
        shared_panel=waiting if by_cols else 0,
        own_panel=0 if by_cols else waiting,
        own_kept=kept_bytes(problem, tiling),
    )


def _by_depth(problem: Problem, tiling: Tiling) -> Scratch:
    """Both operands are packed by each thread, some steps of all rows and columns at a time."""
    rows, cols = tiling.row_tiles(problem), tiling.col_tiles(problem)
    return Scratch(
        shared_left=0,
        shared_right=0,
        own_left=left_bytes(problem, tiling, rows) if tiling.left is Operand.CALL else 0,
        own_right=problem.sections * right_bytes(problem, tiling, cols) if tiling.cuts_right else 0,
        own_tiles=0,
        shared_panel=_rounded(panel_bytes(problem, tiling)),
        own_kept=kept_bytes(problem, tiling),
        shared_sums=sums_bytes(problem, tiling),
    )


def part_elems(problem: Problem, tiling: Tiling) -> int:
    """Sums of one part of one product, in whole tiles of all sections."""
    tiles = tiling.row_tiles(problem) * tiling.col_tiles(problem)
    return tiles * problem.sections * tiling.mr * tiling.nr


def sums_bytes(problem: Problem, tiling: Tiling) -> int:
    """Bytes of the sums of all parts of all products."""
    sums = max(problem.b, 1) * tiling.parts * part_elems(problem, tiling)
    sums += tiling.lanes if tiling.joined else 0  # a run is read as whole vectors
    return _rounded(sums * problem.product.dtype.bytes)


def divides_depth(problem: Problem) -> bool:
    """Whether sums may be cut into parts: no statistic of a whole row is needed to pack it."""
    return not any(isinstance(problem.nest.statements[p], Reduce) for p in problem.left)


def refuse_depth(problem: Problem, tiling: Tiling) -> Refusal | None:
    """Why the depth is not split so."""
    if not tiling.splits_depth:
        return None
    if tiling.left is Operand.POINTERS:
        return Refusal("operand-layout", "pointers are listed for whole rows")
    if not divides_depth(problem):
        return Refusal("operand-layout", "rows are packed whole: a statistic of each comes first")
    if sums_bytes(problem, tiling) > _MOST_SUMS:
        return Refusal("tile-too-large", f"{sums_bytes(problem, tiling)} bytes of partial sums")
    return None


def left_bytes(problem: Problem, tiling: Tiling, tiles: int) -> int:
    """Bytes of `tiles` packed row tiles."""
    rows = tiles * tiling.mr * tiling.left_blocks(problem)
    return _rounded(rows * tiling.left_ld(problem) * problem.product.dtype.bytes)


def right_bytes(problem: Problem, tiling: Tiling, tiles: int) -> int:
    """Bytes of `tiles` packed column tiles of one section."""
    steps = tiling.packed(tiling.right_depth(problem))
    return _rounded(tiles * steps * tiling.nr * problem.product.dtype.bytes)


def _tile_bytes(problem: Problem, tiling: Tiling) -> int:
    """Sums of one tile; of all row tiles where sections wait for each other; of a whole block where
    k is cut."""
    waiting = 1
    rows, cols = tiling.row_tiles(problem), tiling.col_tiles(problem)
    if problem.k > tiling.kc:
        waiting = max(1, min(tiling.mc, rows) * min(tiling.nc, cols))
    elif problem.sections > 1:
        waiting = max(1, min(tiling.mc, rows))
    waiting *= problem.sections
    sums = waiting * tiling.mr * tiling.nr + (tiling.lanes if tiling.joined else 0)
    return _rounded(sums * problem.product.dtype.bytes)  # a run is read as whole vectors


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGN) * ALIGN
