"""Cycles of the register tile: what its instructions take with all operands in the first level.

A cycle is one of `Machine.clock_ghz`, in which a core multiplies and adds two vectors.
"""

from __future__ import annotations

import math

from cost_models.product.subject import Subject, Walk
from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.dot_kernel import columns_together
from kernel_gen.codegen.cpu.matmul.guess import registers
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.runs import left_runs, runs_of
from kernel_gen.codegen.cpu.matmul.tiling import Operand
from kernel_gen.ir.loopnest import Guard
from kernel_gen.ir.target import Target

_FMA = 2.0  # a cycle (Agner Fog, Instruction tables; `gaf calibrate` counts cycles by it)
_LATENCY = 4.0  # of a multiply-add (same tables), which each sum waits for in each step
_LOADS = 2.0  # a cycle (same tables)
_PRESSURE = 0.08  # cycles lost by each load of a step (`codegen.cpu.matmul.guess`)
_SPILLED = 1.5  # cycles of a store and a load, for each vector without a register in each step
_CALL = 10.0  # estimate: a call, and the first steps until the pipes are full
_SUM = 1.5  # cycles of a vector of sums: loaded or set before the steps, stored after them
_LANE_SUM = 4.0  # estimate: shuffles and adds beside those of other sums, and a scalar store
_LOOP = 1.0  # estimate: counter and branch of one round
_POINTER = 0.5  # cycles: a row's pointer is loaded as a run begins


def compute_cycles(subject: Subject, walk: Walk) -> float:
    """Of all tiles of a thread's walk; rows that fill up a tile count, columns as whole vectors."""
    t, sections = subject.tiling, subject.problem.sections
    if t.right is Operand.DOT:
        return walk.tiles * sections * _dot_tile_cycles(subject, walk)
    full = (walk.cols - walk.tails) * _tile_cycles(subject, walk, t.nv)
    tails = walk.tails * _tile_cycles(subject, walk, t.tail_nv(subject.problem))
    return walk.products * walk.rows * sections * (full + tails)


def _tile_cycles(subject: Subject, walk: Walk, nv: int) -> float:
    t = subject.tiling
    halves = t.pairs and "avx512bf16" not in subject.target.features
    steps = walk.depth / (2 if t.pairs else 1)
    each = step_cycles(subject.target, t.mr, nv, halves=halves)
    begun = walk.pieces * (_CALL + _SUM * t.mr * nv)
    if t.left is not Operand.POINTERS:
        return steps * each + begun
    runs, inside = runs_of(subject.problem), _inside(subject) if t.turned else 1.0
    return inside * (steps * each + runs * (_LOOP + _POINTER * t.mr)) + begun


def step_cycles(target: Target, rows: int, vectors: int, *, halves: bool = False) -> float:
    """Of one step of rows × vectors sums: multiply-adds, their latency or loads, whichever takes
    longest, and what does not fit the registers (sums, a step's vectors, one broadcast). `halves`:
    pairs that are taken apart and multiplied half by half."""
    sums, loads = rows * vectors, rows + vectors
    step = max(sums / _FMA, _LATENCY, loads / _LOADS) + _PRESSURE * loads
    step += _SPILLED * max(0, sums + vectors + 1 - registers(target))
    return 2 * step + loads if halves else step


def _dot_tile_cycles(subject: Subject, walk: Walk) -> float:
    """Vectors along k: for each group of columns a vector of each row and column, their products,
    and after each piece the sum of all lanes."""
    p, t = subject.problem, subject.tiling
    group = columns_together(t.mr)
    columns = p.n / max(t.col_tiles(p), 1)
    step = step_cycles(subject.target, t.mr, group) + _LOOP
    sums = columns * t.mr * _LANE_SUM + _CALL
    return columns / group * walk.depth / t.lanes * step + walk.pieces * sums


def _inside(subject: Subject) -> float:
    """The part of a tile's runs that lie inside the operand, where its rows lie at one place in the
    padding: runs that are outside for all of them are left out."""
    p = subject.problem
    runs = left_runs(p)
    if runs is None or extent(p.rows[0]) % subject.tiling.mr:
        return 1.0
    return math.prod(_held(p, guard) for guard in runs.guards)


def _held(problem: Problem, guard: Guard) -> float:
    """The part of its axes' points where a guard holds."""
    values = [guard.index.const]
    for name in guard.index.axes():
        steps = range(extent(problem.nest.axis(name)))
        values = [v + guard.index.coeff(name) * step for v in values for step in steps]
    held = [v for v in values if isinstance(guard.high, int) and guard.low <= v < guard.high]
    return len(held) / max(len(values), 1)
