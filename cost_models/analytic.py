"""An analytic model of a CPU kernel: the larger of its memory time and its arithmetic time.

After the roofline model (Williams, Waterman, Patterson 2009), with a bandwidth per cache level and
a throughput per op. Good for ranking groups. Of schedules it sees what `decided` tells; those of
products have a model of their own (`cost_models.product`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from cost_models.decided import OUTER, UNVECTORISED, Decided, decided
from cost_models.levels import STREAMED, held_gb_s, memory_gb_s
from cost_models.machine import Machine
from cost_models.op_costs import (
    BROADCAST_LOAD,
    CONTIGUOUS_LOAD,
    GATHER_LOAD_PER_ELEMENT,
    vector_cycles,
)
from cost_models.product.model import product_us
from cost_models.strided import strided_cost
from cost_models.walks import walks
from kernel_gen.codegen.cpu.matmul.tiling import NAME as MATMUL
from kernel_gen.codegen.cpu.pointwise import Pointwise
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
    closure,
    operands,
)
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule

_SUM = 0.5  # cycles of a vector in a reduction: two pipes (Agner Fog, Instruction tables)
_MOMENT = 2.5  # of one whose mean is not known yet: its shift is looked at and elements are counted
_LATENCY = 4.0  # cycles that each addition to the same sum waits (same tables)


class AnalyticModel:
    """The cost model that needs no data."""

    name = "analytic"

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()

    def predict_us(self, nest: LoopNest, schedule: Schedule | None, target: Target) -> float:
        """The longer of memory and arithmetic, plus the launch; of the matmul template's kernels
        what their decisions make of it (`cost_models.product`)."""
        if schedule is not None and schedule.template == MATMUL:
            return product_us(nest, schedule, target, self._machine)
        said = decided(nest, schedule, target)
        work = _Work(nest, target, self._machine, said.along)
        packed = schedule is None or schedule.template != "loops"
        arithmetic = work.arithmetic_us(said, packed=packed) / said.threads
        again = 0.0
        if schedule is not None and schedule.template == Pointwise().name:
            extra = strided_cost(nest, schedule, target, self._machine)
            again = extra.nbytes
            arithmetic += extra.cycles / self._machine.clock_ghz / 1e3 / said.threads
        memory = work.memory_us(said, again)
        team = self._machine.fork_us + work.meetings(said) * self._machine.barrier_us
        serial = self._machine.call_us + (team if said.threads > 1 else 0.0)
        return serial + max(memory, arithmetic) + 0.15 * min(memory, arithmetic)


class _Work:
    """Bytes and cycles of one nest."""

    def __init__(self, nest: LoopNest, target: Target, machine: Machine, along: str | None) -> None:
        self._nest = nest
        self._target = target
        self._machine = machine
        self._extents = {
            a.name: a.extent if isinstance(a.extent, int) else machine.symbolic_extent
            for a in nest.axes
        }
        self._live = nest.statement_axes()
        self._vectorised = along not in UNVECTORISED
        self._inner = self._inner_axis(along)

    def _inner_axis(self, along: str | None) -> str | None:
        """The axis that vectors run along: what most elements are read and written along, among
        the reduced axes or the kept ones if a decision says which; templates merge axes, so its
        name says no more than that."""
        reduced = {a for s in self._nest.statements if isinstance(s, Reduce) for a in s.axes}
        kept = [a.name for a in self._nest.axes if a.name not in reduced]
        able = list(self._extents)
        if reduced and along in (OUTER, *kept):
            able = kept
        elif along in reduced:
            able = [name for name in able if name in reduced]
        moved = dict.fromkeys(able, 0)
        for access in self._accesses() if reduced else self._nest.stores:
            axis = _unit_axis(access)
            if axis in moved:
                moved[axis] += self._points(frozenset().union(*(i.axes() for i in access.index)))
        return max(reversed(able), key=lambda axis: moved[axis], default=None)

    def _accesses(self) -> list[Load | Store]:
        loads = [s for s in self._nest.statements if isinstance(s, Load)]
        return [*self._nest.stores, *loads]

    def _points(self, axes: frozenset[str] | tuple[str, ...]) -> int:
        return math.prod(self._extents[axis] for axis in axes)

    # -- memory ---------------------------------------------------------------------------------

    def memory_us(self, said: Decided, again: float = 0.0) -> float:
        """Time to move what the nest touches, and `again` bytes of it, at the rate of the cache
        level that holds it, and what is streamed past the caches at that of memory."""
        touched, written, streamed = self._bytes(said.streamed)
        read = self._bytes_read(said)
        machine, target, busy = self._machine, self._target, said.threads
        rate = held_gb_s(touched + written + streamed, target, machine, busy)
        past = STREAMED * streamed / memory_gb_s(machine, busy)
        return ((read + written + again) / rate + past) / busy / 1e3

    def _bytes(self, streamed: frozenset[int]) -> tuple[float, float, float]:
        """Bytes read, written and streamed, each once."""
        written = past = 0.0
        for number, buffer in enumerate(self._nest.buffers):
            if buffer.role is not BufferRole.OUTPUT:
                continue
            nbytes = self._elems(number) * buffer.type.dtype.bytes
            if number in streamed:
                past += nbytes
            else:
                written += nbytes
        loads = (n for n, s in enumerate(self._nest.statements) if isinstance(s, Load))
        return self._bytes_of(loads), written, past

    def _elems(self, buffer: int) -> int:
        shape = self._nest.buffers[buffer].type.shape
        return math.prod(d if isinstance(d, int) else self._machine.symbolic_extent for d in shape)

    def _bytes_read(self, said: Decided) -> float:
        """Bytes that the walks read: once if a row stays in L2 between its stages."""
        total = 0.0
        for walk in walks(self._nest, crosses=said.crosses):
            whole = walk.reads | walk.read_for_stores
            if self._row_bytes(walk.axes, whole) <= self._target.l2_bytes // 2:
                total += self._bytes_of(whole)
                continue
            total += self._bytes_of(walk.reads) * max(walk.stages - said.one_pass, 1)
            total += self._bytes_of(walk.read_for_stores)
        return total

    def _row_bytes(self, axes: frozenset[str], loads: Iterable[int]) -> int:
        along = [axes & frozenset(self._live[number]) for number in loads]
        return sum(4 * self._points(own) for own in along if own)

    def _bytes_of(self, loads: Iterable[int]) -> float:
        """Bytes of all that these loads read, each once."""
        points: dict[int, int] = {}
        for number in loads:
            load = self._nest.statements[number]
            assert isinstance(load, Load)
            axes = frozenset().union(*(i.axes() for i in load.index))
            points[load.buffer] = points.get(load.buffer, 0) + self._points(axes)
        return sum(
            min(count, self._elems(buffer)) * self._nest.buffers[buffer].type.dtype.bytes
            for buffer, count in points.items()
        )

    def meetings(self, said: Decided) -> int:
        """How often threads that share each row wait for each other: once in each stage of it."""
        if not said.splits_rows:
            return 0
        found = walks(self._nest, crosses=said.crosses)
        every = frozenset(self._extents)
        return sum(self._points(every - w.axes) * w.stages for w in found if w.axes)

    # -- arithmetic -----------------------------------------------------------------------------

    def arithmetic_us(self, said: Decided, *, packed: bool) -> float:
        """Time of all statements on one core; products in packed tiles or by plain loops."""
        reduced = _MOMENT if said.one_pass else _SUM
        cycles = products = waited = 0.0  # the latter for sums, each of which waits for itself
        packed_at_load = self._packed_at_load() if packed else frozenset()
        for number, statement in enumerate(self._nest.statements):
            if number in packed_at_load:
                continue
            live = frozenset(self._live[number])
            if isinstance(statement, Contract):
                points = self._points(live | frozenset(statement.axes))
                pairs = 2 if self._multiplies_pairs(statement) else 1
                products += points / (2 * pairs * self._lanes(statement.dtype))
            elif isinstance(statement, Reduce):
                points = self._points(live | frozenset(statement.axes))
                cycles += points / self._lanes(statement.dtype) * reduced
                waited += points / self._lanes(statement.dtype) * _LATENCY / said.sums
            else:
                cycles += self._points(live) * self._cycles(statement, live)
        machine = self._machine
        rate = machine.product_efficiency if packed else machine.plain_loop_efficiency
        busy = max(cycles / machine.loop_efficiency, waited) + products / rate
        return busy / machine.clock_ghz / 1e3

    def _packed_at_load(self) -> frozenset[int]:
        """Statements that only make constant operands of products: calls find them packed."""
        statements = self._nest.statements
        products = {n: s for n, s in enumerate(statements) if isinstance(s, Contract)}
        made = {
            operand: closure((operand,), lambda n: operands(statements[n]))
            for product in products.values()
            for operand in (product.lhs, product.rhs)
        }
        stored = [store.statement for store in self._nest.stores]
        elsewhere = closure(stored, lambda n: operands(statements[n]), stop=products)
        changing = [own for own in made.values() if not self._is_constant(own)]
        constant = [own for own in made.values() if self._is_constant(own)]
        return frozenset().union(*constant) - elsewhere.union(*changing)

    def _multiplies_pairs(self, product: Contract) -> bool:
        """Whether an instruction multiplies pairs of the operands as they are stored."""
        if "avx512bf16" not in self._target.features:
            return False
        loads = [self._nest.statements[n] for n in (product.lhs, product.rhs)]
        return all(
            isinstance(s, Load) and self._nest.buffers[s.buffer].type.dtype is DType.BF16
            for s in loads
        )

    def _is_constant(self, positions: frozenset[int]) -> bool:
        loads = (self._nest.statements[n] for n in positions)
        buffers = (self._nest.buffers[s.buffer] for s in loads if isinstance(s, Load))
        return all(buffer.role is BufferRole.CONSTANT for buffer in buffers)

    def _lanes(self, dtype: DType) -> int:
        if not self._vectorised:
            return 1
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
