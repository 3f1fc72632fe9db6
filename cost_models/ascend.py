"""An analytic model of a kernel on an NPU: the longest of memory, vector and cube time.

All rates are those of the chip's parameter file. It knows nothing of buffers, queues and bank
conflicts, which the simulator does; it ranks groups and block counts before anything is built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernel_gen.ascend.chips import Chip, load_chip
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import (
    BufferRole,
    Compute,
    Contract,
    Load,
    LoopNest,
    Reduce,
    Statement,
    operands,
)
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule

_REPEAT_BYTES = 256
_NEAR = 4  # elements between columns that are copied with what lies between
_REDUCE_REPEATS = 2.0  # estimate: halving adds cost two instructions per repeat
_STEPS = {"exp": "Exp", "log": "Ln", "div": "Div", "sqrt": "Sqrt", "rsqrt": "Rsqrt"}
_SLOW = {
    "tanh": 20.0, "erf": 30.0, "sigmoid": 8.0, "gelu": 30.0, "silu": 8.0, "pow": 10.0,
    "relu": 3.0, "maximum": 4.0, "minimum": 4.0, "where": 2.0,
}  # fmt: skip
"""Repeats' cycles of ops that take several instructions (estimates; extremes and selections by the
instructions that they become)."""
_SYMBOLIC_EXTENT = 128  # estimate: what a dimension is worth that is unknown
_STAGE_CYCLES = 6000  # estimate, from simulated products: first and last chunks of a vector part
_BY_FIXPIPE = ("cast", "relu")  # what a product's way out does without vector cores
_OVERLAP_LOST = 0.15  # estimate: share of the shorter parts that does not overlap


class AscendModel:
    """The cost model of NPUs; needs no data."""

    name = "ascend"

    def predict_us(self, nest: LoopNest, schedule: Schedule | None, target: Target) -> float:
        """Simulated microseconds, the launch included."""
        chip = load_chip(target.model)
        cores = _cores(schedule, target)
        parts = (
            _memory_cycles(nest, chip, cores),
            _vector_cycles(nest, chip) / cores,
            _cube_cycles(nest) / chip.cube_cores,
        )
        longest = max(parts)
        busy = longest + _OVERLAP_LOST * (sum(parts) - longest)
        start = chip.block_start_cycles + chip.gm_read_start_cycles + chip.gm_write_start_cycles
        start += _STAGE_CYCLES * _vector_stages(nest, _is_tabled(schedule))
        return chip.launch_us + chip.microseconds(start + busy)


def _cores(schedule: Schedule | None, target: Target) -> int:
    """Vector cores that a schedule uses; all of them where it does not say."""
    for decision in schedule.decisions if schedule else ():
        args = dict(decision.args)
        value = args.get("value")
        if args.get("parameter") == "cores" and isinstance(value, int):
            return max(1, min(value, target.cores))
    return target.cores


def _extent(nest: LoopNest, axis: str) -> int:
    extent = nest.axis(axis).extent
    return extent if isinstance(extent, int) else _SYMBOLIC_EXTENT


def _points(nest: LoopNest, axes: tuple[str, ...]) -> int:
    return math.prod(_extent(nest, axis) for axis in axes)


def _memory_cycles(nest: LoopNest, chip: Chip, cores: int) -> float:
    """Bytes touched, each once, at the rate of memory or of the cores in use."""
    total = 0.0
    for number, buffer in enumerate(nest.buffers):
        dims = buffer.type.shape
        elems = math.prod(d if isinstance(d, int) else _SYMBOLIC_EXTENT for d in dims)
        if buffer.role is not BufferRole.OUTPUT:
            reads = sum(
                _points(nest, tuple(sorted({a for i in s.index for a in i.axes()})))
                for s in nest.statements
                if isinstance(s, Load) and s.buffer == number
            )
            elems = min(elems, reads)
        total += elems * buffer.type.dtype.bytes
    return total / min(chip.hbm_bytes_per_cycle, cores * chip.gm_read_rate)


def _vector_cycles(nest: LoopNest, chip: Chip) -> float:
    """Cycles of all vector instructions on one core, and of what its scalar unit reads for them."""
    live = nest.statement_axes()
    plain = {n for s in nest.statements if isinstance(s, Contract) for n in operands(s)}
    cycles = 0.0
    for number, statement in enumerate(nest.statements):
        if isinstance(statement, Load) and number not in plain:
            cycles += _points(nest, tuple(live[number])) * _rearranged(nest, statement, chip)
        elif isinstance(statement, Compute):
            cycles += _repeats(nest, live[number], statement.dtype) * _cost(statement.op, chip)
        elif isinstance(statement, Reduce):
            axes = tuple({*live[number], *statement.axes})
            cycles += _repeats(nest, axes, statement.dtype) * _REDUCE_REPEATS
    return cycles


def _rearranged(nest: LoopNest, load: Load, chip: Chip) -> float:
    """Cycles per element of a load whose neighbours along the results' columns are none in memory:
    gathered in the buffer where they are near or rows of it run along memory, else read one by
    one."""
    columns = nest.stores[0].index[-1].axes() if nest.stores and nest.stores[0].index else ()
    strides = [load.index[-1].coeff(axis) for axis in columns] if load.index else []
    found = any(axis in index.axes() for index in load.index for axis in columns)
    live = nest.statement_axes()
    indirect = any(set(live[n]) & set(columns) for index in load.index for n in index.statements())
    if not indirect and (not found or 1 in strides):
        return 0.0
    across = any(load.index[-1].coeff(axis) == 1 for axis in load.index[-1].axes())
    if indirect or not (across or any(0 < stride <= _NEAR for stride in strides)):
        return chip.scalar_gm_cycles
    size = nest.buffers[load.buffer].type.dtype.bytes
    return chip.instructions["Gather"].repeat * size / _REPEAT_BYTES


def _repeats(nest: LoopNest, axes: tuple[str, ...], dtype: DType) -> float:
    return _points(nest, axes) * dtype.compute.bytes / _REPEAT_BYTES


def _cost(op: str, chip: Chip) -> float:
    if op == "const":
        return 0.0
    if op in _STEPS:
        return chip.instructions[_STEPS[op]].repeat
    return _SLOW.get(op, chip.instructions["Add"].repeat)


def _cube_cycles(nest: LoopNest) -> float:
    """Cycles of all matrix products on one cube core: 16 by 16 by 32 B a cycle."""
    live = nest.statement_axes()
    cycles = 0.0
    for number, statement in enumerate(nest.statements):
        if isinstance(statement, Contract):
            narrow = _operand_type(nest, statement) in (DType.F16, DType.BF16)
            points = _points(nest, tuple({*live[number], *statement.axes}))
            cycles += points / (16 * 16 * (16 if narrow else 4))
    return cycles


def _operand_type(nest: LoopNest, product: Contract) -> DType:
    """The type in which the cube reads operands: of those that lie in memory, else of results."""
    read = (nest.statements[number] for number in (product.lhs, product.rhs))
    plain = [nest.buffers[s.buffer].type.dtype for s in read if isinstance(s, Load)]
    stored = [b.type.dtype for b in nest.buffers if b.role is BufferRole.OUTPUT]
    return (plain or stored)[0]


def _vector_stages(nest: LoopNest, tabled: bool) -> int:
    """Parts of a nest with a product that vector cores compute in front of it and behind it;
    `tabled`: biases are none."""
    products = [n for n, s in enumerate(nest.statements) if isinstance(s, Contract)]
    before, behind = set[int](), set(products)
    for number in reversed(range(len(nest.statements))):
        if number in products or number in before:
            before.update(operands(nest.statements[number]))
    for number, statement in enumerate(nest.statements):
        if behind & set(operands(statement)):
            behind.add(number)
    computed = [n for n in before if _is_computed(nest.statements[n])]
    after = [n for n in behind - set(products) if _op(nest.statements[n]) not in _BY_FIXPIPE]
    biased = tabled and all(_is_biased(nest, n, products) for n in after)
    return bool(computed) + bool(after and not biased)


def _is_biased(nest: LoopNest, number: int, products: Sequence[int]) -> bool:
    """Whether a statement adds to a product what the bias table takes: a number for each column."""
    s = nest.statements[number]
    if _op(s) != "add" or not set(operands(s)) & set(products):
        return False
    columns = nest.statement_axes()[number][-1:]
    loads = [nest.statements[n] for n in operands(s) if nest.statement_axes()[n] == columns]
    return any(
        isinstance(x, Load) and nest.buffers[x.buffer].type.dtype in (DType.F16, DType.F32)
        for x in loads
    )


def _is_tabled(schedule: Schedule | None) -> bool:
    """Whether a schedule leaves biases to the bias table, as one does that does not say."""
    args = [dict(d.args) for d in schedule.decisions] if schedule else []
    return not any(a.get("parameter") == "bias" and a.get("value") == "vector" for a in args)


def _is_computed(statement: Statement) -> bool:
    return isinstance(statement, Reduce) or _op(statement) not in (None, "const", "cast")


def _op(statement: Statement) -> str | None:
    return statement.op if isinstance(statement, Compute | Reduce) else None
