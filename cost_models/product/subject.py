"""What is asked about: a kernel of the matmul template, and the busiest thread's part of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cost_models.machine import Machine
from kernel_gen.codegen.cpu.matmul.problem import Problem, plain_load
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split, Tiling
from kernel_gen.ir.target import Target


@dataclass(frozen=True, slots=True)
class Subject:
    """One kernel on one machine."""

    problem: Problem
    tiling: Tiling
    target: Target
    machine: Machine

    @property
    def team(self) -> int:
        """Threads that start."""
        return self.target.cores if self.tiling.team else 1

    @property
    def share(self) -> float:
        """The part of all units (products, tiles, parts) that the busiest thread has."""
        return self.dealt(self.tiling.units(self.problem))

    @property
    def busy(self) -> int:
        """Threads that have work."""
        return min(self.team, max(self.tiling.units(self.problem), 1))

    def dealt(self, units: int) -> float:
        """The part of some units that the busiest thread has: 1/team where they deal evenly, more
        where there are few."""
        return math.ceil(max(units, 1) / self.team) / max(units, 1)

    @property
    def sum_bytes(self) -> int:
        """Of one sum, and of an element that is read in place or packed wide."""
        return self.problem.product.dtype.bytes

    @property
    def packed_bytes(self) -> float:
        """Of one packed element."""
        return self.sum_bytes / (2 if self.tiling.pairs else 1)

    @property
    def right_bytes(self) -> float:
        """Of one element of the right operand as tiles read it."""
        if self.tiling.right is not Operand.DOT:
            return self.packed_bytes
        load = plain_load(self.problem.nest, self.problem.product.rhs)
        return self.problem.nest.buffers[load.buffer].type.dtype.bytes if load else self.sum_bytes


@dataclass(frozen=True, slots=True)
class Walk:
    """The busiest thread's way through its part of a product, in register tiles: `rows` by `cols`
    of them in `products` products, in blocks of `block_rows` by `block_cols`, `depth` steps of k
    in pieces of `steps`; `tails` of `cols` are the narrower ones at the end of a slab. Averages:
    they may be fractions."""

    products: float
    rows: float
    cols: float
    block_rows: float
    block_cols: float
    depth: float
    steps: float
    tails: float

    @property
    def tiles(self) -> float:
        """Register tiles, each `depth` steps long."""
        return self.products * self.rows * self.cols

    @property
    def row_blocks(self) -> int:
        return math.ceil(self.rows / self.block_rows)

    @property
    def col_blocks(self) -> int:
        return math.ceil(self.cols / self.block_cols)

    @property
    def pieces(self) -> int:
        """Times that a tile is gone on with, each time with its next steps."""
        return math.ceil(self.depth / self.steps)


def walk_of(subject: Subject) -> Walk:
    """How the template's driver walks (`codegen.cpu.matmul.driver`)."""
    p, t = subject.problem, subject.tiling
    rows, cols, depth = float(t.row_tiles(p)), float(t.col_tiles(p)), float(max(p.k, 1))
    tails = float(t.slabs(p)) if t.slab_cols(p) % t.nr else 0.0
    products = subject.share * max(t.units(p), 1)  # of those that are shared out
    if t.splits_depth:
        depth /= t.parts
        return Walk(products, rows, cols, rows, cols, depth, min(t.step(p), depth), tails)
    if t.split is Split.ROWS:
        rows, products = min(rows, products), max(1.0, products / rows)
    if t.split is Split.COLS:
        mine = min(cols, products)
        tails = math.floor(tails * mine / cols)  # of the thread that has fewest
        cols, products = mine, max(1.0, products / cols)
    return Walk(
        products, rows, cols, min(t.mc, rows), min(t.nc, cols), depth, min(t.kc, depth), tails
    )
