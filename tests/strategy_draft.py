"""The draft of a random graph: a builder that knows how large and how exact each value is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import hypothesis.strategies as st

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.types import TensorType, ValueDomain, static_shape

LIMIT = 32.0  # of |x|, for every finite float value
MAX_ELEMS, _LARGE_ELEMS = 2048, 40_000
WILD = "wild"  # name of an input whose values know no bound
_EXTENTS = (2, 3, 1, 4, 5, 7, 8, 9, 16, 17, 33)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Info:
    """`bound` limits |x| of a float value, unless it is `wild`: of any size, denormal or beyond
    what its type can hold; `exact`: any back end computes the same bits."""

    bound: float = 0.0
    exact: bool = True
    wild: bool = False


class Choices(Protocol):
    """Where the decisions of a draft come from."""

    def one_of(self, items: Sequence[T], /) -> T: ...

    def integer(self, low: int, high: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """Hypothesis decides, and shrinks what fails."""

    draw: st.DrawFn

    def one_of(self, items: Sequence[T]) -> T:
        return self.draw(st.sampled_from(list(items)))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


@dataclass(frozen=True, slots=True)
class Thrown:
    """A seeded generator decides: each seed is another graph, in a fiftieth of the time."""

    rng: random.Random

    def one_of(self, items: Sequence[T]) -> T:
        return self.rng.choice(items)

    def integer(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)


class Draft:
    """The values so far; steps read from it and add to it."""

    def __init__(
        self,
        choices: Choices,
        dtypes: tuple[DType, ...],
        *,
        specials: bool,
        strided: bool = False,
        chained: bool = False,
        large: bool = False,
    ) -> None:
        self._choices = choices
        self.dtypes = dtypes
        self.specials = specials
        self.strided = strided
        self.chained = chained  # a step mostly goes on with what the last one made
        self.large = large  # several tiles of a product, several blocks of a row
        self.max_elems = _LARGE_ELEMS if large else MAX_ELEMS
        self._builder = GraphBuilder()
        self._info: dict[int, Info] = {}
        self._used: set[int] = set()

    def type(self, value: int) -> TensorType:
        return self._builder.type_of(value)

    def shape(self, value: int) -> tuple[int, ...]:
        return static_shape(self.type(value).shape)

    def info(self, value: int) -> Info:
        return self._info[value]

    def one_of(self, items: Sequence[T]) -> T:
        return self._choices.one_of(items)

    def integer(self, low: int, high: int) -> int:
        return self._choices.integer(low, high)

    def chance(self, one_in: int) -> bool:
        return self.integer(1, one_in) == one_in

    def pick(
        self, fits: Callable[[int], bool] = lambda value: True, *, wild: bool = False
    ) -> int | None:
        """A value so far that fits, late ones first, and is wild only if it may be; None if there
        is none."""
        found = [v for v in reversed(self._info) if (wild or not self._info[v].wild) and fits(v)]
        if not found:
            return None
        return found[0] if self.chained and not self.chance(6) else self.one_of(found)

    def new_shape(self, rank: int | None = None, max_elems: int = MAX_ELEMS) -> tuple[int, ...]:
        """Extents of 1, odd and even sizes, now and then 0."""
        shape: list[int] = []
        for _ in range(self.integer(0, 4) if rank is None else rank):
            room = max_elems // max(math.prod(shape), 1)
            shape.append(0 if self.chance(40) else self.one_of([n for n in _EXTENTS if n <= room]))
        return tuple(shape)

    def fresh_input(
        self,
        dtype: DType | None = None,
        shape: tuple[int, ...] | None = None,
        *,
        finite: bool = False,
    ) -> int:
        """A new input of the program, constant or not; `finite` whatever the graph's specials."""
        kind = self.one_of((InputKind.USER, InputKind.USER, InputKind.PARAMETER))
        shape = self.new_shape() if shape is None else shape
        type = TensorType(dtype or self.one_of(self.dtypes), shape, self._layout(shape))
        domain = ValueDomain(finite=type.dtype.is_float and (finite or not self.specials))
        value = self._builder.input(type, kind, domain)
        self._info[value] = Info(4.0 if type.dtype.is_float else 0.0)
        return value

    def wild_input(self, dtype: DType, shape: tuple[int, ...]) -> int:
        """A new input of floats of any size, infinities and NaN."""
        type = TensorType(dtype, shape, self._layout(shape))
        value = self._builder.input(type, name=WILD)
        self._info[value] = Info(wild=True)
        return value

    def index_input(self, shape: tuple[int, ...], extent: int) -> int:
        """A new input of positions below `extent`."""
        type = TensorType(self.one_of((DType.I64, DType.I32)), shape, self._layout(shape))
        value = self._builder.input(type, domain=ValueDomain(0, extent - 1))
        self._info[value] = Info()
        return value

    def _layout(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Strides of an input: contiguous, or in another order, with gaps and repeated parts."""
        if not self.strided or not shape or self.chance(2):
            return None
        step, strides = 1, [0] * len(shape)
        left = list(range(len(shape)))
        while left:
            dim = left.pop(self.integer(0, len(left) - 1))
            if self.chance(6):
                continue  # each element of this dimension is the same
            step *= self.one_of((1, 1, 1, 2, 3))
            strides[dim] = step
            step *= max(shape[dim], 1)
        return tuple(strides)

    def op(
        self, op: str, *values: int, bound: float = 0.0, exact: bool = False, **attrs: object
    ) -> int:
        """Emit an op. `bound` is for float results, `exact` for ops that do not round; integer and
        bool results are exact (steps see to it that their operands are)."""
        result = self._builder.apply(op, values, attrs)
        self._used.update(values)
        if not self.type(result).dtype.is_float:
            self._info[result] = Info()
            return result
        exact = exact and all(self._info[value].exact for value in values)
        wild = any(self._info[value].wild for value in values)
        self._info[result] = Info(bound, exact, wild)
        return self._scaled(result) if bound > LIMIT and not wild else result

    def scalar(self, number: float, dtype: DType) -> int:
        result = self._builder.op(
            "full", shape=(), dtype=dtype, value=float(number) if dtype.is_float else number
        )
        # A float literal of a narrow type is not rounded to it, so not every back end has its bits.
        self._info[result] = Info(abs(number), float(number) in (0.0, 0.5, 1.0, 2.0))
        return result

    def with_scalar(self, op: str, value: int, number: float, bound: float) -> int:
        return self.op(op, value, self.scalar(number, self.type(value).dtype), bound=bound)

    def _scaled(self, value: int) -> int:
        """Brings a value that has grown too large back below the limit."""
        factor = 2.0 ** -math.ceil(math.log2(self._info[value].bound / LIMIT))
        return self.with_scalar("mul", value, factor, LIMIT)

    def squashed(self, value: int) -> int:
        """The value within -1 … 1."""
        return value if self._info[value].bound <= 1 else self.op("tanh", value, bound=1.0)

    def positive(self, value: int, least: float) -> int:
        """|x| + least."""
        bound = self._info[value].bound
        size = self.op("abs", value, bound=bound, exact=True)
        return self.with_scalar("add", size, least, min(bound + least, LIMIT))

    def finish(self) -> Graph:
        """All values that nothing reads become outputs, and one other now and then."""
        unread = [value for value in self._info if value not in self._used]
        also = [self.pick(wild=True)] if self.chance(4) else []
        for value in dict.fromkeys([*unread, *also]):
            if value is not None:
                self._builder.output(value)
        return self._builder.build()
