"""Values of a nest's statements over a part of its grid: what the executor evaluates.

A statement's value is an array with one dimension per axis it lives on, in the nest's order of
axes.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.executor.evaluation import Evaluation
from kernel_gen.executor.fold import fold
from kernel_gen.executor.grid import Range, pieces
from kernel_gen.executor.windows import bordered, strided, window
from kernel_gen.ir.evaluate_elementwise import ELEMENTWISE
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Term, ValueTerm
from kernel_gen.ir.loopnest import (
    Compute,
    Contract,
    Guard,
    IndexValue,
    Load,
    Reduce,
    Store,
    closure,
)
from kernel_gen.ir.rounding import cast_held

Array = NDArray[Any]


class Block:
    """The statements' values over ranges of the axes, each computed once when it is asked for.

    A block inside another one narrows some axes; what lives on none of them is the outer block's.
    """

    def __init__(
        self, evaluation: Evaluation, ranges: Mapping[str, Range], outer: Block | None = None
    ) -> None:
        self._evaluation = evaluation
        self._nest, self._live = evaluation.nest, evaluation.live
        self.ranges = dict(ranges)
        self._sizes = {axis: high - low for axis, (low, high) in ranges.items()}
        self._outer = outer
        around = {} if outer is None else outer.ranges
        self._narrowed = {axis for axis in ranges if ranges[axis] != around.get(axis)}
        self._values: dict[int, Array] = {}
        self._widened: dict[tuple[str, ...], Block] = {}

    def inside(self, ranges: Mapping[str, Range]) -> Block:
        """The block in which some axes have these ranges."""
        return Block(self._evaluation, {**self.ranges, **ranges}, self)

    def value(self, number: int) -> Array:
        """The value of a statement."""
        if not self._is_own(number):
            assert self._outer is not None
            return self._outer.value(number)
        if number not in self._values:
            for needed in self._missing(number):
                made, shape = self._made(needed), self._shape(self._live[needed])
                self._values[needed] = made if made.shape == shape else np.broadcast_to(made, shape)
        return self._values[number]

    def _is_own(self, number: int) -> bool:
        return self._outer is None or not self._narrowed.isdisjoint(self._live[number])

    def _missing(self, number: int) -> list[int]:
        """What is to compute for a statement, operands first: no recursion, nests are deep."""

        def reads(n: int) -> list[int]:
            read = () if self._is_made_elsewhere(n) else self._evaluation.reads[n]
            return [m for m in read if m not in self._values and self._is_own(m)]

        return sorted(closure([number], reads))

    def _is_made_elsewhere(self, number: int) -> bool:
        """Whether the operands of a sum are asked of other blocks."""
        statement = self._nest.statements[number]
        if not isinstance(statement, Reduce | Contract):
            return False
        if self._whole(statement) is not self:
            return True
        return isinstance(statement, Reduce) and self._cut(statement) is not None

    def _cut(self, reduce: Reduce) -> tuple[str, int] | None:
        return self._evaluation.cut(reduce, self._sizes)

    def _shape(self, axes: Sequence[str]) -> tuple[int, ...]:
        return tuple(self._sizes[axis] for axis in axes)

    def _made(self, position: int) -> Array:
        axes, statement = self._live[position], self._nest.statements[position]
        match statement:
            case Load():
                return self._load(statement, axes)
            case IndexValue():
                held = self._evaluation.held(statement.dtype)
                return self._index(statement.index, axes).astype(held)
            case Compute():
                made, noise = self._compute(statement, axes), self._evaluation.noise
                if noise is None:
                    return made
                return noise.on_result(statement.op, made, statement.dtype, self._place(position))
            case Reduce():
                return self._whole(statement)._reduce(statement, axes)
            case Contract():
                return self._whole(statement)._contract(statement, axes)

    def _whole(self, statement: Reduce | Contract) -> Block:
        """The block in which what is summed over is whole: a store may be cut along it as well."""
        nest, known = self._nest, self._evaluation.known
        ranges = {axis: (0, known(nest.axis(axis).extent)) for axis in statement.axes}
        if all(self.ranges[axis] == whole for axis, whole in ranges.items()):
            return self
        if statement.axes not in self._widened:
            block = Block(self._evaluation, {**self.ranges, **ranges}, self._outer)
            self._widened[statement.axes] = block
        return self._widened[statement.axes]

    def _place(self, position: int) -> int:
        """A number that differs between statements and between parts of the grid."""
        lows = (self.ranges[axis][0] for axis in self._live[position])
        return position + sum((k + 2) * 7919 * low for k, low in enumerate(lows))

    def _terms(self, number: int, outer: Sequence[str], inner: Sequence[str]) -> Array:
        """What is summed up over the axes `inner`, spread as `_spread` does."""
        value, noise = self._spread(number, outer, inner), self._evaluation.noise
        if noise is None:
            return value
        count = math.prod(self._evaluation.known(self._nest.axis(a).extent) for a in inner)
        dtype = self._nest.statements[number].dtype
        return noise.on_terms(value, dtype, self._place(number), count)

    def _aligned(self, number: int, axes: Sequence[str]) -> Array:
        """Value of a statement with a dimension (of 1 where it does not live) for each axis."""
        live = self._live[number]
        value = self.value(number)
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
            low, high = self.ranges[term.axis]
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
            holds = holds & (found >= guard.low) & (found < self._evaluation.known(guard.high))
        return holds

    def _load(self, load: Load, axes: Sequence[str]) -> Array:
        dtype, shape = self._evaluation.held(load.dtype), self._shape(axes)
        source = self._evaluation.operands[load.buffer]
        seen = self._seen(load, source, axes, dtype)
        if seen is not None:
            return seen
        at = tuple(self._index(index, axes) for index in load.index)
        if not load.guards and 0 not in shape:
            return np.broadcast_to(self._read(load, at).astype(dtype), shape)
        holds = np.broadcast_to(self._holds(load.guards, axes), shape)
        if not holds.any():
            return np.full(shape, load.fill, dtype)
        inside = tuple(np.where(holds, index, 0) for index in at)
        found = np.broadcast_to(self._read(load, inside).astype(dtype), shape)
        return np.where(holds, found, np.asarray(load.fill, dtype))

    def _seen(
        self, load: Load, source: Array, axes: Sequence[str], dtype: np.dtype[Any]
    ) -> Array | None:
        """What a load reads as a view of its operand, or of a part of it with a border of the
        fill; None where it is none."""
        if not load.guards:
            plain = strided(source, load.index, self.ranges, axes)
            return None if plain is None else plain.astype(dtype)
        limits = {g.index: (g.low, self._evaluation.known(g.high)) for g in load.guards}
        if len(limits) < len(load.guards):
            return None
        fill = np.asarray(load.fill, dtype)
        found = bordered(source, load.index, limits, self.ranges, fill)
        return None if found is None else strided(*found, self.ranges, axes)

    def _read(self, load: Load, at: Sequence[Array]) -> Array:
        source = self._evaluation.operands[load.buffer]
        for index, extent in zip(at, source.shape, strict=True):
            if index.min() < 0 or index.max() >= extent:
                raise IndexError(f"{load} reads outside shape {source.shape}")
        return np.asarray(source[tuple(at)])

    def _compute(self, compute: Compute, axes: Sequence[str]) -> Array:
        if compute.op == "const":
            return np.asarray(dict(compute.attrs)["value"]).astype(
                self._evaluation.held(compute.dtype)
            )
        args = [self._aligned(number, axes) for number in compute.args]
        if compute.op == "cast":
            source = self._nest.statements[compute.args[0]].dtype
            found = cast_held(args[0], source, compute.dtype)
        else:
            found = ELEMENTWISE[compute.op](*args)
        return self._evaluation.kept(found, compute.dtype)

    def _reduce(self, reduce: Reduce, axes: Sequence[str]) -> Array:
        """The reduction, piece by piece where what it reads would not stay in a cache."""
        cut, held = self._cut(reduce), self._evaluation.held(reduce.dtype)
        if cut is None:
            summed = reduce.op in ("sum", "prod")
            value = (self._terms if summed else self._spread)(reduce.arg, axes, reduce.axes)
            outer, inner = value.shape[: len(axes)], value.shape[len(axes) :]
            return fold(reduce.op, value.reshape(*outer, math.prod(inner)), held)
        blocks = self._cut_along(*cut)
        parts = [np.broadcast_to(b._reduce(reduce, axes), self._shape(axes)) for b in blocks]
        return fold(reduce.op, np.stack(parts, -1), held)

    def _cut_along(self, axis: str, size: int) -> Iterator[Block]:
        return (self.inside({axis: part}) for part in pieces(self.ranges[axis], size))

    def _spread(self, number: int, outer: Sequence[str], inner: Sequence[str]) -> Array:
        """Value of a statement over the axes `outer` and then `inner`, all of them at full size."""
        axes = [axis for axis in self._evaluation.axes if axis in (*outer, *inner)]
        full = np.broadcast_to(self._aligned(number, axes), self._shape(axes))
        return full.transpose([axes.index(axis) for axis in (*outer, *inner)])

    def _contract(self, contract: Contract, axes: Sequence[str]) -> Array:
        letters = dict(zip(self._evaluation.axes, string.ascii_letters, strict=False))
        dtype = self._evaluation.held(contract.dtype)
        terms, values = [], []
        for number in (contract.lhs, contract.rhs):
            outer = [axis for axis in self._live[number] if axis not in contract.axes]
            terms.append("".join(letters[axis] for axis in (*outer, *contract.axes)))
            values.append(self._terms(number, outer, contract.axes).astype(dtype, copy=False))
        equation = f"{','.join(terms)}->{''.join(letters[axis] for axis in axes)}"
        return np.asarray(np.einsum(equation, *values, optimize=True))

    def store(self, store: Store, output: Array) -> None:
        """Writes this block's part of an output."""
        indexed = {axis for index in store.index for axis in index.axes()}
        live = indexed | set(self._live[store.statement])
        axes = [axis for axis in self._evaluation.axes if axis in live]
        value = np.broadcast_to(self._aligned(store.statement, axes), self._shape(axes))
        plain = None if store.guards else window(store.index, self.ranges, output.shape)
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
