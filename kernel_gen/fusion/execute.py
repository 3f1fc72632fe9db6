"""NumPy executor of loop nests: the back end without generated code, and the checks' reference.

A statement's value is an array with one dimension per axis it lives on, in the nest's order of
axes. The grid is cut into blocks: by a schedule's `tile` decisions, so that its tails are run as
well, else so that a block's values stay in a cache.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.errors import InvalidGraph
from kernel_gen.fusion.grid import Range, Tiling, blocks
from kernel_gen.fusion.noise import Noise
from kernel_gen.fusion.windows import window
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.evaluate_elementwise import ELEMENTWISE
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Term, ValueTerm
from kernel_gen.ir.loopnest import (
    BufferRole,
    Compute,
    Contract,
    Guard,
    IndexValue,
    Load,
    LoopNest,
    Reduce,
    Statement,
    Store,
)
from kernel_gen.ir.rounding import cast_held, flushed, ranged
from kernel_gen.ir.types import Dim

Array = NDArray[Any]
_POISON = 77  # what an element holds that no store has written


def execute(
    nest: LoopNest,
    operands: Sequence[Array],
    schedule: Tiling | None = None,
    precision: str = "f32",
    noise: Noise | None = None,
) -> list[Array]:
    """The nest's outputs, in the order of its output buffers.

    `operands` are the arrays of its other buffers, in order. `precision` "f32" computes as kernels
    do, "flushed" as well but with zeros for subnormal results, "f64" computes all floats in float64
    and rounds only where a `cast` says so. `noise` puts rounding errors in. Raises InvalidGraph
    where operands do not fit.
    """
    symbols = _bind(nest, operands)
    extents = {axis.name: _known(axis.extent, symbols) for axis in nest.axes}
    outputs = {
        number: np.full(
            [_known(d, symbols) for d in buffer.type.shape],
            _POISON,
            numpy_dtype(buffer.type.dtype),
        )
        for number, buffer in enumerate(nest.buffers)
        if buffer.role is BufferRole.OUTPUT
    }
    for block in blocks(nest, extents, schedule):
        with np.errstate(all="ignore"):
            _Block(nest, operands, block, symbols, precision, noise).run(outputs)
    return list(outputs.values())


def _known(extent: Dim, symbols: Mapping[str, int]) -> int:
    return extent if isinstance(extent, int) else symbols[extent.name]


def _bind(nest: LoopNest, operands: Sequence[Array]) -> dict[str, int]:
    """Values of the symbols, from the operands' shapes."""
    reads = [buffer for buffer in nest.buffers if buffer.role is not BufferRole.OUTPUT]
    if len(reads) != len(operands):
        raise InvalidGraph(f"{len(operands)} operands given, the nest reads {len(reads)}")
    symbols: dict[str, int] = {}
    for position, (buffer, operand) in enumerate(zip(reads, operands, strict=True)):
        expected = tuple(
            d if isinstance(d, int) else symbols.setdefault(d.name, found)
            for d, found in zip(buffer.type.shape, operand.shape, strict=True)
        )
        if operand.shape != expected or operand.dtype != numpy_dtype(buffer.type.dtype):
            raise InvalidGraph(
                f"operand {position}: {operand.dtype} {operand.shape}, expected {buffer.type}"
            )
    return symbols


class _Block:
    """Evaluates a nest over one block of its grid."""

    def __init__(
        self,
        nest: LoopNest,
        operands: Sequence[Array],
        block: Mapping[str, Range],
        symbols: Mapping[str, int],
        precision: str,
        noise: Noise | None,
    ) -> None:
        self._noise = noise
        self._nest = nest
        self._operands = operands
        self._block = block
        self._symbols = symbols
        self._wide, self._flush = precision == "f64", precision == "flushed"
        self._axes = tuple(axis.name for axis in nest.axes)
        self._live = nest.statement_axes()
        self._values: list[Array] = []

    def run(self, outputs: Mapping[int, Array]) -> None:
        """Writes this block's part of `outputs`."""
        for position, statement in enumerate(self._nest.statements):
            shape = self._shape(self._live[position])
            self._values.append(np.broadcast_to(self._value(position, statement), shape))
        for store in self._nest.stores:
            self._store(store, outputs[store.buffer])

    def _shape(self, axes: Sequence[str]) -> tuple[int, ...]:
        return tuple(self._block[axis][1] - self._block[axis][0] for axis in axes)

    def _type(self, dtype: DType) -> np.dtype[np.generic]:
        """The NumPy type in which values of `dtype` are held."""
        return np.dtype(np.float64) if self._wide and dtype.is_float else numpy_dtype(dtype)

    def _value(self, position: int, statement: Statement) -> Array:
        axes = self._live[position]
        match statement:
            case Load():
                return self._load(statement, axes)
            case IndexValue():
                return self._index(statement.index, axes).astype(self._type(statement.dtype))
            case Compute():
                made = self._compute(statement, axes)
                if self._noise is None:
                    return made
                return self._noise.on_result(statement.op, made, statement.dtype, position)
            case Reduce():
                return self._reduce(statement, axes)
            case Contract():
                return self._contract(statement, axes)

    def _terms(self, number: int, outer: Sequence[str], inner: Sequence[str]) -> Array:
        """What is summed up over the axes `inner`, spread as `_spread` does."""
        value, dtype = self._spread(number, outer, inner), self._nest.statements[number].dtype
        if self._noise is None:
            return value
        count = math.prod(value.shape[len(outer) :])
        return self._noise.on_terms(value, dtype, number, count)

    def _aligned(self, number: int, axes: Sequence[str]) -> Array:
        """Value of a statement with a dimension (of 1 where it does not live) for each axis."""
        live = self._live[number]
        value = self._values[number]
        sizes = dict(zip(live, value.shape, strict=True))
        return value.reshape([sizes.get(axis, 1) for axis in axes])

    def _index(self, index: Index, axes: Sequence[str]) -> Array:
        """Value of an index, one dimension per axis."""
        total: Array = np.full((1,) * len(axes), index.const, np.int64)
        for term, coeff in index.terms:
            total = total + self._term(term, axes) * coeff
        return total

    def _term(self, term: Term, axes: Sequence[str]) -> Array:
        if isinstance(term, AxisTerm):
            low, high = self._block[term.axis]
            return np.arange(low, high).reshape([-1 if a == term.axis else 1 for a in axes])
        if isinstance(term, ValueTerm):
            return self._aligned(term.statement, axes).astype(np.int64)
        inner = self._index(term.index, axes)
        divided = inner // term.divisor if isinstance(term, FloorDiv) else inner % term.divisor
        return np.asarray(divided)

    def _holds(self, guards: Sequence[Guard], axes: Sequence[str]) -> Array:
        holds: Array = np.ones((1,) * len(axes), np.bool_)
        for guard in guards:
            found = self._index(guard.index, axes)
            holds = holds & (found >= guard.low) & (found < _known(guard.high, self._symbols))
        return holds

    def _load(self, load: Load, axes: Sequence[str]) -> Array:
        dtype, shape = self._type(load.dtype), self._shape(axes)
        source = self._operands[load.buffer]
        plain = None if load.guards else window(load.index, self._block, source.shape)
        if plain is not None:
            return plain.of(source, axes).astype(dtype)
        at = tuple(self._index(index, axes) for index in load.index)
        if not load.guards and 0 not in shape:
            return np.broadcast_to(self._read(load, at).astype(dtype), shape)
        holds = np.broadcast_to(self._holds(load.guards, axes), shape)
        if not holds.any():
            return np.full(shape, load.fill, dtype)
        inside = tuple(np.where(holds, index, 0) for index in at)
        found = np.broadcast_to(self._read(load, inside).astype(dtype), shape)
        return np.where(holds, found, np.asarray(load.fill, dtype))

    def _read(self, load: Load, at: Sequence[Array]) -> Array:
        source = self._operands[load.buffer]
        for index, extent in zip(at, source.shape, strict=True):
            if index.min() < 0 or index.max() >= extent:
                raise IndexError(f"{load} reads outside shape {source.shape}")
        return np.asarray(source[tuple(at)])

    def _compute(self, compute: Compute, axes: Sequence[str]) -> Array:
        if compute.op == "const":
            return np.asarray(dict(compute.attrs)["value"]).astype(self._type(compute.dtype))
        args = [self._aligned(number, axes) for number in compute.args]
        if compute.op == "cast":
            source = self._nest.statements[compute.args[0]].dtype
            found = cast_held(args[0], source, compute.dtype)
        else:
            found = ELEMENTWISE[compute.op](*args)
        return self._held(found, compute.dtype)

    def _held(self, value: Array, dtype: DType) -> Array:
        """A result in the type in which it is held; float64 keeps the range of fp32."""
        made = value.astype(self._type(dtype), copy=False)
        if self._flush and dtype.is_float:
            return flushed(made)
        return ranged(made, dtype) if self._wide and dtype.is_float else made

    def _reduce(self, reduce: Reduce, axes: Sequence[str]) -> Array:
        summed = reduce.op in ("sum", "prod")
        value = (self._terms if summed else self._spread)(reduce.arg, axes, reduce.axes)
        outer, inner = value.shape[: len(axes)], value.shape[len(axes) :]
        value = value.reshape(*outer, math.prod(inner))
        dtype = self._type(reduce.dtype)
        match reduce.op:
            case "sum":
                return np.asarray(value.sum(-1, dtype=dtype))
            case "prod":
                return np.asarray(value.prod(-1, dtype=dtype))
            case "any":
                return np.asarray(value.any(-1))
            case "all":
                return np.asarray(value.all(-1))
            case "amax":
                return np.asarray(value.max(-1, initial=_extreme(value.dtype, -1)))
            case "amin":
                return np.asarray(value.min(-1, initial=_extreme(value.dtype, 1)))
            case "argmax" | "argmin":
                return np.asarray(getattr(np, reduce.op)(value, -1)).astype(dtype)
        raise InvalidGraph(f"reduction {reduce.op} is unknown")

    def _spread(self, number: int, outer: Sequence[str], inner: Sequence[str]) -> Array:
        """Value of a statement over the axes `outer` and then `inner`, all of them at full size."""
        axes = [axis for axis in self._axes if axis in (*outer, *inner)]
        full = np.broadcast_to(self._aligned(number, axes), self._shape(axes))
        return full.transpose([axes.index(axis) for axis in (*outer, *inner)])

    def _contract(self, contract: Contract, axes: Sequence[str]) -> Array:
        letters = dict(zip(self._axes, string.ascii_letters, strict=False))
        dtype = self._type(contract.dtype)
        terms, values = [], []
        for number in (contract.lhs, contract.rhs):
            outer = [axis for axis in self._live[number] if axis not in contract.axes]
            terms.append("".join(letters[axis] for axis in (*outer, *contract.axes)))
            values.append(self._terms(number, outer, contract.axes).astype(dtype, copy=False))
        equation = f"{','.join(terms)}->{''.join(letters[axis] for axis in axes)}"
        return np.asarray(np.einsum(equation, *values, optimize=True))

    def _store(self, store: Store, output: Array) -> None:
        indexed = {axis for index in store.index for axis in index.axes()}
        live = indexed | set(self._live[store.statement])
        axes = [axis for axis in self._axes if axis in live]
        value = np.broadcast_to(self._aligned(store.statement, axes), self._shape(axes))
        plain = None if store.guards else window(store.index, self._block, output.shape)
        if plain is not None and set(plain.axes) == set(axes):
            plain.of(output, axes)[...] = value.astype(output.dtype)
            return
        at = tuple(self._index(index, axes) for index in store.index)
        if at and not store.guards and np.broadcast_shapes(*(i.shape for i in at)) == value.shape:
            output[at] = value.astype(output.dtype)
            return
        holds = np.broadcast_to(self._holds(store.guards, axes), value.shape)
        spread = tuple(np.broadcast_to(index, value.shape)[holds] for index in at)
        if spread:
            output[spread] = value[holds].astype(output.dtype)
        elif holds.all():
            output[()] = value.astype(output.dtype)


def _extreme(dtype: np.dtype[np.generic], sign: int) -> float | int | bool:
    """The largest (sign 1) or smallest value of a type."""
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind in "iu":
        info = np.iinfo(dtype.name)
        return int(info.max if sign > 0 else info.min)
    return sign * float("inf")
