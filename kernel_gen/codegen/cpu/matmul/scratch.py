"""How many bytes of scratch a matmul kernel needs, and for what."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.row_epilogue import kept_bytes, panel_bytes
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split, Tiling

ALIGN = 64


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

    @property
    def shared(self) -> int:
        return self.shared_left + self.shared_right + self.shared_panel

    @property
    def own(self) -> int:
        return self.own_left + self.own_right + self.own_tiles + self.own_panel + self.own_kept


def scratch(problem: Problem, tiling: Tiling) -> Scratch:
    rows, cols = tiling.row_tiles(problem), tiling.col_tiles(problem)
    by_cols = tiling.split is Split.COLS
    left = tiling.left is Operand.CALL
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


def left_bytes(problem: Problem, tiling: Tiling, tiles: int) -> int:
    """Bytes of `tiles` packed row tiles."""
    rows = tiles * tiling.mr * tiling.left_blocks(problem)
    return _rounded(rows * tiling.left_ld(problem) * problem.product.dtype.bytes)


def right_bytes(problem: Problem, tiling: Tiling, tiles: int) -> int:
    """Bytes of `tiles` packed column tiles of one section."""
    return _rounded(tiles * tiling.packed(problem.k) * tiling.nr * problem.product.dtype.bytes)


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
