"""The time of one kernel of the matmul template, seen from its busiest thread.

    call + starting and gathering threads + packing of operands + adding up parts of sums
         + max(tiles and epilogue, transfers)

Transfers hide behind arithmetic, and it behind them: loads of the next vectors do not wait for
multiply-adds, and panels are streams that the hardware fetches ahead. All rates are the machine's;
nothing is known of particular shapes.
"""

from __future__ import annotations

from cost_models.machine import Machine
from cost_models.product.packing import left_cycles, right_cycles
from cost_models.product.subject import Subject, Walk, walk_of
from cost_models.product.tile import compute_cycles
from cost_models.product.traffic import Moved, footprint_bytes, move_us, transfer_us
from cost_models.product.vectors import epilogue_cycles
from kernel_gen.codegen.cpu.matmul.analysed import analysed
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split, from_schedule
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule


def product_us(nest: LoopNest, schedule: Schedule, target: Target, machine: Machine) -> float:
    """Microseconds of one call with warm caches; raises InvalidGraph for a nest or a schedule that
    is not the template's."""
    problem = analysed(nest)
    if isinstance(problem, Refusal):
        raise InvalidGraph(f"a matmul schedule for a nest without a product: {problem.sentence}")
    tiling = from_schedule(schedule, target.vector_bytes // problem.product.dtype.bytes)
    return time_us(Subject(problem, tiling, target, machine))


def time_us(subject: Subject) -> float:
    """Microseconds of one call of a kernel."""
    walk = walk_of(subject)
    begun = subject.machine.call_us + _team_us(subject)
    work = max(_tiles_us(subject, walk), transfer_us(subject, walk))
    return begun + _packing_us(subject) + _parts_us(subject) + work


def _tiles_us(subject: Subject, walk: Walk) -> float:
    after = epilogue_cycles(subject.problem, subject.tiling)
    return _us(subject, compute_cycles(subject, walk) + subject.share * after)


def _us(subject: Subject, cycles: float) -> float:
    return cycles / subject.machine.clock_ghz / 1e3


def _team_us(subject: Subject) -> float:
    """Starting a team, and its meetings: after what is packed together, after all parts, and before
    whole rows are finished."""
    if subject.team == 1:
        return 0.0
    p, t = subject.problem, subject.tiling
    meetings = (
        t.split is Split.COLS and t.left.is_prepared,
        t.split is Split.ROWS and t.right is Operand.CALL,
        t.splits_depth,
        t.split.meets_rows and p.finishes_rows,
    )
    return subject.machine.fork_us + subject.machine.barrier_us * sum(meetings)


def _packing_us(subject: Subject) -> float:
    """Both operands, each as the threads share it out (`codegen.cpu.matmul.driver`)."""
    p, t = subject.problem, subject.tiling
    left, right = left_cycles(subject), right_cycles(subject)
    groups = p.b * -(-t.row_tiles(p) * t.mr // (2 * t.lanes))  # whole vectors along the rows
    left_share = subject.dealt(groups) if t.split is Split.COLS else subject.share
    right_share = subject.dealt(p.b * t.col_tiles(p)) if t.split is Split.ROWS else subject.share
    left_elems = p.b * p.m * p.k if t.left is Operand.CALL else 0
    right_elems = p.b * p.n * p.k * p.sections if t.right is Operand.CALL else 0
    return left_share * _packed_us(subject, left, left_elems) + right_share * _packed_us(
        subject, right, right_elems
    )


def _packed_us(subject: Subject, cycles: float, elems: int) -> float:
    """So many cycles, or so many elements read and written, whichever takes longer."""
    nbytes = elems * (subject.sum_bytes + subject.packed_bytes)
    moved = move_us(subject, Moved(nbytes, footprint_bytes(subject), shared=True))
    return max(_us(subject, cycles), moved)


def _parts_us(subject: Subject) -> float:
    """Adding up the parts of sums whose depth is split: written and read once more, by all threads
    together."""
    p, t = subject.problem, subject.tiling
    if not t.splits_depth:
        return 0.0
    sums = t.parts * p.b * p.sections * t.row_tiles(p) * t.col_tiles(p) * t.mr * t.nr
    nbytes = 2.0 * sums * subject.sum_bytes
    busy = _us(subject, nbytes / subject.target.vector_bytes)
    return (busy + move_us(subject, Moved(nbytes, nbytes / 2, shared=True))) / subject.team
