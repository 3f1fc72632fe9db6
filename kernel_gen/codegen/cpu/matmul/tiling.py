"""The decisions of one matmul kernel, as the schedule tells them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.runs import POINTER_BYTES, runs_of
from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.graph import Attr, attrs
from kernel_gen.schedule.schedule import Decision, Schedule
from kernel_gen.schedule.words import decided, number, word

NAME = "matmul"
_THREADS = {False: "one", True: "all"}
_PAIRS = "bf16-pairs"
_JOINED = "joined"
_AHEAD = {False: "none", True: "next"}
_TURNED = "turned"


class Split(StrEnum):
    """What threads share out: whole products, tiles of rows, tiles of columns, or parts of the
    sums, whose results are added up afterwards."""

    BATCH = "batch"
    ROWS = "rows"
    COLS = "cols"
    DEPTH = "depth"

    @property
    def meets_rows(self) -> bool:
        """Whether whole rows of sums come from many threads, who meet before rows are finished."""
        return self in (Split.COLS, Split.DEPTH)


class Operand(StrEnum):
    """How the product reads an operand: in place, packed in each call, or packed once at load.

    `DOT` reads the right operand in place, with vectors along k (for few rows); `POINTERS` reads
    the left one in place, through pointers listed in each call.
    """

    DIRECT = "direct"
    DOT = "dot"
    CALL = "call"
    LOAD = "load"
    POINTERS = "pointers"

    @property
    def is_packed(self) -> bool:
        """Whether the product reads a packed copy."""
        return self in (Operand.CALL, Operand.LOAD)

    @property
    def is_prepared(self) -> bool:
        """Whether each call makes something of the operand first: a packed copy, or pointers."""
        return self in (Operand.CALL, Operand.POINTERS)


@dataclass(frozen=True, slots=True)
class Tiling:
    """Register tile MR × (NV vectors); KC steps of k per block; blocks of MC row tiles by NC
    column tiles, whose sums wait in scratch while k advances. `lanes` are the elements of one
    vector of the accumulator's type.

    Where the depth is split, a block is all rows and columns: KC steps of both operands are packed,
    multiplied into the sums of their part, and forgotten."""

    lanes: int
    mr: int
    nv: int
    kc: int
    mc: int
    nc: int
    split: Split
    left: Operand
    right: Operand
    unroll: int = 1
    prefetch: int = 8
    pairs: bool = False  # packed elements are two bf16 of neighbouring steps of k
    ahead: bool = False  # whether row tiles prefetch the next panel of a packed right operand
    joined: bool = False  # whether column tiles go on over the ends of the innermost column axis
    team: bool = True  # False: one thread whatever the caller offers
    keep: str = "none"  # what is kept along a row that is finished in stages (`row_epilogue`)
    parts: int = 1  # of a product's sums, where the depth is split
    turned: bool = False  # whether rows run along their first axis innermost

    @property
    def splits_depth(self) -> bool:
        return self.split is Split.DEPTH

    @property
    def cuts_right(self) -> bool:
        """Whether the right operand is packed some steps of k at a time."""
        return self.splits_depth and self.right is Operand.CALL

    @property
    def fetches_next(self) -> bool:
        """Whether there is a packed panel to fetch ahead."""
        return self.ahead and self.right.is_packed

    @property
    def nr(self) -> int:
        """Columns of a tile."""
        return self.lanes * self.nv

    def row_tiles(self, problem: Problem) -> int:
        return max(1, -(-problem.m // self.mr))

    def slab_cols(self, problem: Problem) -> int:
        """Columns of one slab, which is cut into tiles: those of one point of the outer column
        axes, or all of them."""
        return problem.n if self.joined else problem.inner_cols

    def slabs(self, problem: Problem) -> int:
        return problem.n // self.slab_cols(problem) if problem.n else 0

    def slab_tiles(self, problem: Problem) -> int:
        """Column tiles of one slab."""
        return max(1, -(-self.slab_cols(problem) // self.nr))

    def col_tiles(self, problem: Problem) -> int:
        return max(1, self.slabs(problem)) * self.slab_tiles(problem)

    def units(self, problem: Problem) -> int:
        """What threads share out: products, or tiles or parts of them."""
        match self.split:
            case Split.BATCH:
                return problem.b
            case Split.ROWS:
                return problem.b * self.row_tiles(problem)
            case Split.COLS:
                return problem.b * self.col_tiles(problem)
            case Split.DEPTH:
                return problem.b * self.parts

    def tail_nv(self, problem: Problem) -> int:
        """Vectors of the last tile of a slab; `nv` if it is full."""
        rest = self.slab_cols(problem) % self.nr
        return -(-rest // self.lanes) if rest else self.nv

    def packed(self, steps: int) -> int:
        """Packed elements along `steps` steps of k."""
        return -(-steps // 2) if self.pairs else steps

    def grain(self, problem: Problem) -> int:
        """Steps of k that no part of the sums ends within: one step of the outermost axis of the
        depth, or where it has one axis a vector, so that parts are packed as whole vectors."""
        inner = problem.k // max(extent(problem.depth[0]), 1)
        return max(inner, 1) if len(problem.depth) > 1 else self.lanes

    def step(self, problem: Problem) -> int:
        """Steps of k of one block where the depth is split."""
        grain = self.grain(problem)
        return -(-min(self.kc, max(problem.k, 1)) // grain) * grain

    def right_depth(self, problem: Problem) -> int:
        """Steps of k that one packed column tile has."""
        return self.step(problem) if self.cuts_right else problem.k

    def left_blocks(self, problem: Problem) -> int:
        """Blocks of k that packed A is cut into, so that the rows which a block of the product
        reads lie next to each other; one where k has several axes, or where A is packed block by
        block."""
        if self.splits_depth or len(problem.depth) > 1:
            return 1
        return max(1, -(-problem.k // self.kc))

    def left_rows(self, problem: Problem) -> int:
        """Rows of one block of packed A: all of a product's, or those of one block of rows."""
        tiles = self.row_tiles(problem)
        return self.mr * (tiles if self.split.meets_rows else min(self.mc, tiles))

    def left_ld(self, problem: Problem) -> int:
        """Row stride of packed A in packed elements: room for whole vectors along the innermost
        axis of the depth, and not a multiple of 512 B, which would put all rows of a tile into few
        sets of the cache. Where rows are pointers, room for those of a row."""
        if self.left is Operand.POINTERS:
            return runs_of(problem) * POINTER_BYTES // problem.product.dtype.bytes
        steps = self.step(problem) if self.splits_depth else problem.k
        last = extent(problem.depth[-1]) if len(problem.depth) > 1 else steps
        written = steps - last + -(-last // self.lanes) * self.lanes
        if self.left_blocks(problem) > 1:
            written = self.kc
        if self.pairs:  # stored as whole vectors of half the width
            written = self.packed(-(-written // self.lanes) * self.lanes)
        stride = -(-written // self.lanes) * self.lanes
        step = 512 // problem.product.dtype.bytes
        return stride + self.lanes if stride % step == 0 else stride


def to_schedule(tiling: Tiling) -> Schedule:
    """The tiling as replayable decisions."""
    rows = (Decision("rows", attrs(keep=tiling.keep)),) if tiling.keep != "none" else ()
    return Schedule(
        NAME,
        (
            *rows,
            Decision("tile", attrs(rows=tiling.mr, vectors=tiling.nv)),
            Decision("block", attrs(depth=tiling.kc, rows=tiling.mc, cols=tiling.nc)),
            Decision("pack", _packing(tiling)),
            *((Decision("cols", attrs(tiles=_JOINED)),) if tiling.joined else ()),
            *((Decision("walk", attrs(rows=_TURNED)),) if tiling.turned else ()),
            Decision("parallel", _sharing(tiling)),
            Decision("unroll", attrs(depth=tiling.unroll)),
            Decision("prefetch", attrs(depth=tiling.prefetch, panel=_AHEAD[tiling.ahead])),
        ),
    )


def _packing(tiling: Tiling) -> tuple[tuple[str, Attr], ...]:
    if tiling.pairs:
        return attrs(left=str(tiling.left), right=str(tiling.right), element=_PAIRS)
    return attrs(left=str(tiling.left), right=str(tiling.right))


def _sharing(tiling: Tiling) -> tuple[tuple[str, Attr], ...]:
    how = attrs(split=str(tiling.split), threads=_THREADS[tiling.team])
    return attrs(**dict(how), parts=tiling.parts) if tiling.splits_depth else how


def from_schedule(schedule: Schedule, lanes: int) -> Tiling:
    """Inverse of `to_schedule`; raises InvalidGraph if a decision is missing."""
    if schedule.template != NAME:
        raise InvalidGraph(f"a schedule of {schedule.template}, not of {NAME}")
    split = Split(word(schedule, "parallel", "split"))
    return Tiling(
        lanes=lanes,
        mr=number(schedule, "tile", "rows"),
        nv=number(schedule, "tile", "vectors"),
        kc=number(schedule, "block", "depth"),
        mc=number(schedule, "block", "rows"),
        nc=number(schedule, "block", "cols"),
        split=split,
        left=Operand(word(schedule, "pack", "left")),
        right=Operand(word(schedule, "pack", "right")),
        unroll=number(schedule, "unroll", "depth"),
        prefetch=number(schedule, "prefetch", "depth"),
        pairs=decided(schedule, "pack", "element") == _PAIRS,
        ahead=decided(schedule, "prefetch", "panel") == _AHEAD[True],
        joined=bool(schedule.find("cols")),
        team=word(schedule, "parallel", "threads") == _THREADS[True],
        keep=word(schedule, "rows", "keep") if schedule.find("rows") else "none",
        parts=number(schedule, "parallel", "parts") if split is Split.DEPTH else 1,
        turned=bool(schedule.find("walk")),
    )
