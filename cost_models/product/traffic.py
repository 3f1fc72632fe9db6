"""What moves between the caches: how often each operand is read again, and what was read between.

A read comes from the smallest cache that holds what was touched since the last read of the same
bytes (its reuse distance; Mattson, Gecsei, Slutz and Traiger 1970). Blocks after Goto and van de
Geijn, "Anatomy of high-performance matrix multiplication" (2008): a tile of B stays in the first
level while the row tiles of a block pass it, the block's rows in the second while column tiles do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from cost_models.levels import USABLE, l3_gb_s, memory_gb_s
from cost_models.product.subject import Subject, Walk
from kernel_gen.codegen.cpu.matmul.operand import constant_buffers
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split
from kernel_gen.ir.loopnest import BufferRole

_ONE_STREAM = 0.65  # a packed panel beside columns side by side (docs/kernels.md, "Few rows")
_RUN_START = 256.0  # estimate: bytes that could come until the hardware fetches a new run ahead
_STREAMS = 16  # estimate: runs side by side that the hardware follows
_WRITTEN = 2  # a line is read before it is written


@dataclass(frozen=True, slots=True)
class Moved:
    """`nbytes` last touched `distance_bytes` ago, by the thread itself or, `shared`, by all of them
    together. They are read in runs of `run_bytes`, one at a time if `single`."""

    nbytes: float
    distance_bytes: float
    shared: bool = False
    run_bytes: float = math.inf
    single: bool = False


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Bytes of one row tile and one column tile along all steps of a walk and along one piece, and
    of one tile's sums."""

    left: float
    right: float
    left_piece: float
    right_piece: float
    sums: float


def transfer_us(subject: Subject, walk: Walk) -> float:
    """Of one thread, all that it moves one after the other."""
    outputs = _WRITTEN * subject.share * output_bytes(subject)
    moved = (
        *_right(subject, walk),
        *_left(subject, walk),
        *_sums(subject, walk),
        Moved(outputs, footprint_bytes(subject), shared=True),
    )
    return sum(move_us(subject, one) for one in moved)


def move_us(subject: Subject, moved: Moved) -> float:
    """At the rate of the level that still holds what is read. Reads of the first level are part of
    the tile's cycles."""
    target, machine, busy = subject.target, subject.machine, subject.busy
    distance = moved.distance_bytes / USABLE
    if distance <= target.l1_bytes:
        return 0.0
    if distance <= target.l2_bytes:
        return moved.nbytes / machine.l2_gb_s_core / 1e3
    if distance <= target.l3_bytes / (1 if moved.shared else busy):
        rate = l3_gb_s(machine, target)
    else:
        rate = memory_gb_s(machine, busy)
        rate *= _ONE_STREAM if moved.single else 1.0
    return moved.nbytes * (1 + _RUN_START / moved.run_bytes) / rate / 1e3


def footprint_bytes(subject: Subject) -> float:
    """What one call touches, each byte once; of a constant packed at load its packed copy."""
    p, t = subject.problem, subject.tiling
    nbytes = float(sum(b.type.nbytes for b in p.nest.buffers))
    constants = constant_buffers(p) if t.right is Operand.LOAD else None
    if constants:
        nbytes -= sum(p.nest.buffers[number].type.nbytes for number in set(constants))
        nbytes += p.b * p.sections * t.col_tiles(p) * t.nr * p.k * subject.packed_bytes
    return nbytes


def output_bytes(subject: Subject) -> float:
    """Bytes that one call writes."""
    buffers = subject.problem.nest.buffers
    return float(sum(b.type.nbytes for b in buffers if b.role is BufferRole.OUTPUT))


def _sizes(subject: Subject, walk: Walk) -> _Sizes:
    t, sections = subject.tiling, subject.problem.sections
    left = t.mr * (subject.packed_bytes if t.left.is_packed else subject.sum_bytes)
    right = t.nr * subject.right_bytes * sections
    return _Sizes(
        left=left * walk.depth,
        right=right * walk.depth,
        left_piece=left * walk.steps,
        right_piece=right * walk.steps,
        sums=t.mr * t.nr * subject.sum_bytes * sections,
    )


def _right(subject: Subject, walk: Walk) -> Iterator[Moved]:
    """B: each column tile for the first time, for each further block of rows, and for each further
    row tile of a block."""
    p, t, size = subject.problem, subject.tiling, _sizes(subject, walk)
    run, whole = _right_run(subject, walk), walk.products * walk.cols * size.right
    group = (walk.block_cols if t.split is Split.COLS else walk.cols) * size.right
    own = t.right is Operand.CALL and t.split is not Split.ROWS
    if own:
        first = group
    elif t.right is Operand.CALL:
        first = p.b * t.col_tiles(p) * size.right
    else:
        first = footprint_bytes(subject)
    yield Moved(whole, first, not own, run, single=t.right.is_packed)
    again = whole * (walk.row_blocks - 1)
    yield Moved(again, group + walk.block_rows * size.left, run_bytes=run)
    rest = whole * (walk.rows - walk.row_blocks)
    yield Moved(rest, size.right_piece + 2 * size.left_piece + size.sums, run_bytes=run)


def _right_run(subject: Subject, walk: Walk) -> float:
    """Bytes of B that lie side by side and are read one after the other."""
    t = subject.tiling
    if t.right is Operand.DOT:
        return walk.steps * subject.right_bytes
    if t.right is Operand.DIRECT:
        follows = walk.steps <= _STREAMS  # each step's row goes on with the next column tile
        return (walk.block_cols if follows else 1.0) * t.nr * subject.sum_bytes
    return walk.steps * t.nr * subject.packed_bytes


def _left(subject: Subject, walk: Walk) -> Iterator[Moved]:
    """A: each row tile for the first time, for each further block of columns, and for each further
    column tile of a block."""
    p, t, size = subject.problem, subject.tiling, _sizes(subject, walk)
    whole, together = walk.products * walk.rows * size.left, t.split is Split.COLS
    block = (walk.rows if together else walk.block_rows) * size.left
    if t.left is Operand.CALL:
        yield Moved(whole, block * (p.b if together else 1), together)
    else:
        yield Moved(whole, footprint_bytes(subject), shared=True)
    yield Moved(whole * (walk.col_blocks - 1), block + walk.block_cols * size.right)
    rest = whole * (walk.cols - walk.col_blocks)
    sums = size.sums * (walk.block_rows if walk.pieces > 1 else 1)
    yield Moved(rest, walk.block_rows * size.left_piece + size.right_piece + sums)


def _sums(subject: Subject, walk: Walk) -> Iterator[Moved]:
    """Sums that wait for their next steps: written, and read again, for each further piece."""
    size = _sizes(subject, walk)
    block = walk.block_rows * walk.block_cols * size.sums
    pieces = walk.block_rows * size.left_piece + walk.block_cols * size.right_piece
    yield Moved(2 * walk.tiles * size.sums * (walk.pieces - 1), block + pieces)
