"""An analytic model of a CPU kernel: the larger of its memory time and its arithmetic time.

After the roofline model (Williams, Waterman, Patterson 2009), with a bandwidth per cache level and
a throughput per op. Good for ranking groups; it does not see registers or instruction latency.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from cost_models.op_costs import (
    BROADCAST_LOAD,
    CONTIGUOUS_LOAD,
    GATHER_LOAD_PER_ELEMENT,
    vector_cycles,
)
from cost_models.sharing import partial_sums_bytes, threads_of
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import (
    BufferRole,
    Compute,
    Contract,
    IndexValue,
    Load,
    LoopNest,
    Reduce,
    Store,
    operands,
)
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Machine:
    """Rates that `Target` does not hold. Measured on Zen 5 with AVX-512 unless said otherwise;
    `cost_models.calibrate` measures some of them on the machine at hand."""

    clock_ghz: float = 3.8  # 245 GFLOP/s a core over 64 fp32 operations a cycle
    memory_gb_s: float = 41.0  # copy beyond the caches, read and written, all cores
    l3_gb_s: float = 140.0  # lower part of the 120-280 GB/s seen within L2 and L3
    l2_gb_s_core: float = 120.0  # per core, same measurement
    product_efficiency: float = 0.88  # packed micro-kernel: 221 of 245 GFLOP/s, less edges
    symbolic_extent: int = 128  # estimate: what a dimension is worth that is unknown
    plain_loop_efficiency: float = 0.04  # estimate: a product by plain loops, share of peak
    fork_us: float = 3.0  # estimate: waking the threads of a warm OpenMP team
    call_us: float = 0.2  # estimate: one call through the plan
    loop_efficiency: float = 0.8  # estimate: share of peak that generated pointwise code reaches

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            rate = getattr(self, field.name)
            if not 0 < rate < math.inf:
                raise InvalidInput(f"machine rate {field.name}={rate}: expected a positive number")


class AnalyticModel:
    """The cost model that needs no data."""

    name = "analytic"

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()

    def predict_us(self, nest: LoopNest, schedule: Schedule | None, target: Target) -> float:
        """The longer of memory and arithmetic, plus the launch."""
        threads = threads_of(nest, schedule, target)
        work = _Work(nest, target, self._machine)
        scratch_bytes = partial_sums_bytes(nest, schedule, target)
        memory = work.memory_us(threads, scratch_bytes, fewer_passes=_one_pass(schedule))
        packed = schedule is None or schedule.template != "loops"
        arithmetic = work.arithmetic_us(packed=packed) / threads
        serial = self._machine.call_us + (self._machine.fork_us if threads > 1 else 0.0)
        return serial + max(memory, arithmetic) + 0.15 * min(memory, arithmetic)


def _one_pass(schedule: Schedule | None) -> bool:
    """Whether a schedule takes the mean and the deviations from it together."""
    return schedule is not None and any(
        ("value", 1) in decision.args for decision in schedule.find("passes")
    )


class _Work:
    """Bytes and cycles of one nest."""

    def __init__(self, nest: LoopNest, target: Target, machine: Machine) -> None:
        self._nest = nest
        self._target = target
        self._machine = machine
        self._extents = {
            a.name: a.extent if isinstance(a.extent, int) else machine.symbolic_extent
            for a in nest.axes
        }
        self._live = nest.statement_axes()
        self._inner = self._inner_axis()

    def _inner_axis(self) -> str | None:
        """The axis along which the outputs are written: the vector axis."""
        for store in sorted(self._nest.stores, key=lambda s: -len(s.index)):
            axis = _unit_axis(store)
            if axis is not None:
                return axis
        return self._nest.axes[-1].name if self._nest.axes else None

    def _points(self, axes: frozenset[str] | tuple[str, ...]) -> int:
        return math.prod(self._extents[axis] for axis in axes)

    # -- memory ---------------------------------------------------------------------------------

    def memory_us(
        self, threads: float, scratch_bytes: int = 0, *, fewer_passes: bool = False
    ) -> float:
        """Time to move what the nest touches, and what a schedule keeps beside it (written and read
        once), at the rate of the cache level that holds it. `fewer_passes`: variances take one."""
        footprint = self._footprint() + scratch_bytes
        passes = max(self._passes() - fewer_passes, 1)
        moved = self._footprint() * passes + 2 * scratch_bytes
        machine, target = self._machine, self._target
        if footprint <= target.l2_bytes * threads * 0.75:
            rate = machine.l2_gb_s_core * threads
        elif footprint <= target.l3_bytes * 0.75:
            rate = machine.l3_gb_s
        else:
            rate = machine.memory_gb_s
        return moved / rate / 1e3

    def _footprint(self) -> float:
        """Bytes touched, each once; what is written is read by the cache as well."""
        total = 0.0
        for number, buffer in enumerate(self._nest.buffers):
            size = buffer.type.dtype.bytes
            reads = [
                self._points(frozenset().union(*(i.axes() for i in s.index)))
                for s in self._nest.statements
                if isinstance(s, Load) and s.buffer == number
            ]
            elems = math.prod(
                d if isinstance(d, int) else self._machine.symbolic_extent
                for d in buffer.type.shape
            )
            if buffer.role is BufferRole.OUTPUT:
                total += elems * size
            else:
                total += min(sum(reads), elems) * size
        return total

    def _passes(self) -> int:
        """How often a row passes through the cache: once if it stays in L2 between stages."""
        depth = [0] * len(self._nest.statements)
        row_bytes = 0
        reduced: set[str] = set()
        for number, statement in enumerate(self._nest.statements):
            depth[number] = max((depth[used] for used in operands(statement)), default=0)
            if isinstance(statement, Reduce):
                depth[number] += 1
                reduced |= set(statement.axes)
        for statement in self._nest.statements:
            if isinstance(statement, Load):
                along = reduced & frozenset().union(*(i.axes() for i in statement.index))
                row_bytes += self._points(frozenset(along)) * 4 if along else 0
        return 1 if row_bytes <= self._target.l2_bytes // 2 else 1 + max(depth, default=0)

    # -- arithmetic -----------------------------------------------------------------------------

    def arithmetic_us(self, *, packed: bool) -> float:
        """Time of all statements on one core; products in packed tiles or by plain loops."""
        cycles = products = 0.0
        for number, statement in enumerate(self._nest.statements):
            live = frozenset(self._live[number])
            if isinstance(statement, Contract):
                points = self._points(live | frozenset(statement.axes))
                products += points / (2 * self._lanes(statement.dtype))
            elif isinstance(statement, Reduce):
                points = self._points(live | frozenset(statement.axes))
                cycles += points / self._lanes(statement.dtype) * 0.5
            else:
                cycles += self._points(live) * self._cycles(statement, live)
        machine = self._machine
        rate = machine.product_efficiency if packed else machine.plain_loop_efficiency
        busy = cycles / machine.loop_efficiency + products / rate
        return busy / machine.clock_ghz / 1e3

    def _lanes(self, dtype: DType) -> int:
        return max(self._target.vector_bytes // dtype.compute.bytes, 1)

    def _cycles(self, statement: Load | Compute | IndexValue, live: frozenset[str]) -> float:
        """Cycles per point."""
        lanes = self._lanes(statement.dtype)
        if isinstance(statement, Compute):
            return vector_cycles(statement.op, statement.dtype, lanes) / lanes
        if isinstance(statement, IndexValue):
            return 0.5 / lanes
        return self._load_cycles(statement, live, lanes)

    def _load_cycles(self, load: Load, live: frozenset[str], lanes: int) -> float:
        if self._inner not in live or self._inner is None:
            along = _unit_axis(load)
            return CONTIGUOUS_LOAD / lanes if along is not None else BROADCAST_LOAD
        strided = any(index.coeff(self._inner) for index in load.index[:-1])
        if strided or (load.index and load.index[-1].coeff(self._inner) != 1):
            return GATHER_LOAD_PER_ELEMENT
        return CONTIGUOUS_LOAD / lanes


def _unit_axis(access: Load | Store) -> str | None:
    """The axis that moves through the last dimension element by element."""
    if not access.index:
        return None
    last = access.index[-1]
    return next((axis for axis in sorted(last.axes()) if last.coeff(axis) == 1), None)
