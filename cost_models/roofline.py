"""Where a kernel stands against its device: operations and bytes of its nest, limits of a target.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model" (2009),
with one bandwidth per level of the memory that can hold what a kernel touches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cost_models.calibrate import machine_of
from cost_models.machine import Machine
from kernel_gen.ascend.chips import load_chip
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.loopnest import Compute, Contract, Load, LoopNest, Reduce, Statement
from kernel_gen.ir.target import DeviceKind, Target

_FP32_BYTES = 4
_FMA_A_CYCLE = 2  # vector pipes that multiply and add
_CUBE_MULTIPLY_ADDS = 16 * 16 * 16  # of fp16 a cycle and core
_REPEAT_BYTES = 256  # of a vector instruction of an NPU


@dataclass(frozen=True, slots=True)
class Work:
    """What a nest does once. `operations` are floating-point or integer ones (a multiply-add counts
    two), `nbytes` each operand once; `has_product` says whether it holds a matrix product."""

    operations: int
    nbytes: int
    has_product: bool

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.nbytes if self.nbytes else 0.0


@dataclass(frozen=True, slots=True)
class Level:
    """Memory that holds up to `capacity_bytes` and moves `bytes_per_second`, all cores together."""

    name: str
    capacity_bytes: float
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """Limits of a device in operations and bytes per second. `levels` from the smallest up; the
    last one holds anything. `source` says where the figures come from, `is_assumed` that they are
    of another machine than the target's."""

    product_rate: float
    vector_rate: float
    levels: tuple[Level, ...]
    source: str
    is_assumed: bool = False

    def level(self, work: Work) -> Level:
        """The smallest memory that holds what the kernel touches."""
        return next(found for found in self.levels if work.nbytes <= found.capacity_bytes)

    def rate(self, work: Work) -> float:
        """Operations per second that the kernel's kind could reach without memory."""
        return self.product_rate if work.has_product else self.vector_rate

    def floor_us(self, work: Work) -> float:
        """The least time: the longer of moving the bytes and doing the operations."""
        return 1e6 * max(self._seconds(work))

    def is_memory_bound(self, work: Work) -> bool:
        """Whether moving the bytes takes longer than the operations."""
        memory, arithmetic = self._seconds(work)
        return memory >= arithmetic

    def _seconds(self, work: Work) -> tuple[float, float]:
        memory = work.nbytes / self.level(work).bytes_per_second
        return memory, work.operations / self.rate(work)


def roofline_of(target: Target, machine: Machine | None = None) -> Roofline:
    """The limits of a target, as its cost model takes them: `machine`, else the rates kept for the
    target here (`gaf calibrate`), else the built-in ones."""
    if target.kind is not DeviceKind.CPU:
        return _npu(target)
    machine = machine or machine_of(target)
    cores, lanes = target.cores, target.vector_bytes // _FP32_BYTES
    fp32 = machine.clock_ghz * 1e9 * 2 * _FMA_A_CYCLE * lanes * cores
    levels = (
        Level("L2", 0.75 * target.l2_bytes * cores, machine.l2_gb_s_core * 1e9 * cores),
        Level("L3", 0.75 * target.l3_bytes, machine.l3_gb_s * 1e9),
        Level("memory", math.inf, machine.memory_gb_s * 1e9),
    )
    assumed = machine == Machine()
    known = "built into the cost model" if assumed else "kept by gaf calibrate"
    source = f"fp32 multiply-adds and bandwidths {known}"
    return Roofline(fp32, fp32, levels, source, assumed)


def _npu(target: Target) -> Roofline:
    chip = load_chip(target.model)
    cycles = chip.mhz * 1e6
    levels = (
        Level("L2", chip.l2_bytes, chip.l2_bytes_per_s),
        Level("HBM", math.inf, chip.hbm_bytes_per_s),
    )
    return Roofline(
        2 * _CUBE_MULTIPLY_ADDS * chip.cube_cores * cycles,
        _REPEAT_BYTES / _FP32_BYTES * chip.vector_cores * cycles,
        levels,
        f"fp16 products, fp32 vector operations and bandwidths of the {chip.name}'s parameter file",
    )


def work_of(nest: LoopNest) -> Work:
    """Operations and bytes of a nest; raises InvalidInput for a symbolic extent."""
    product = any(isinstance(statement, Contract) for statement in nest.statements)
    return Work(nest_operations(nest), nest_bytes(nest), product)


def nest_operations(nest: LoopNest) -> int:
    """Operations of a nest: one per computed or reduced point, two per multiply-add."""
    extents = _extents(nest)
    live = nest.statement_axes()

    def points(axes: tuple[str, ...]) -> int:
        return math.prod(extents[name] for name in axes)

    def count(position: int, statement: Statement) -> int:
        match statement:
            case Compute(op="const") | Compute(op="cast"):
                return 0
            case Compute():
                return points(live[position])
            case Reduce(arg=arg):
                return points(live[arg])
            case Contract(axes=axes):
                return 2 * points(tuple(dict.fromkeys((*live[position], *axes))))
        return 0

    return sum(count(position, statement) for position, statement in enumerate(nest.statements))


def nest_bytes(nest: LoopNest) -> int:
    """Bytes of a nest: each operand once; of a table that is read at given positions, what is read
    where that is less."""
    extents = _extents(nest)
    live = nest.statement_axes()
    gathered: dict[int, int] = {}
    for position, statement in enumerate(nest.statements):
        if isinstance(statement, Load) and any(i.statements() for i in statement.index):
            read = math.prod(extents[name] for name in live[position])
            gathered[statement.buffer] = gathered.get(statement.buffer, 0) + read
    total = 0
    for number, buffer in enumerate(nest.buffers):
        elems = min(buffer.type.elems, gathered.get(number, buffer.type.elems))
        total += elems * buffer.type.dtype.bytes
    return total


def _extents(nest: LoopNest) -> dict[str, int]:
    found: dict[str, int] = {}
    for axis in nest.axes:
        if not isinstance(axis.extent, int):
            raise InvalidInput(f"axis {axis.name} has no fixed extent")
        found[axis.name] = axis.extent
    return found
