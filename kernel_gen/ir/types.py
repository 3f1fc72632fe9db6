"""Types of tensor values: dimensions, shapes, strides and value domains."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.dtype import DType

MAX_RANK = 8
_SYMBOL = re.compile(r"s[0-9]{1,4}\Z")


@dataclass(frozen=True, slots=True)
class Sym:
    """A symbolic extent. Names are canonical (`s0`, `s1`, …), never the user's text."""

    name: str

    def __post_init__(self) -> None:
        if not _SYMBOL.match(self.name):
            raise InvalidGraph(f"symbol {self.name!r}: expected s0, s1, …")


Dim = int | Sym
Shape = tuple[Dim, ...]


def static_shape(shape: Iterable[Dim]) -> tuple[int, ...]:
    """`shape` as integers; raises InvalidGraph if a dimension is symbolic."""
    dims = tuple(shape)
    for dim in dims:
        if isinstance(dim, Sym):
            raise InvalidGraph(f"shape {dims}: dimension {dim.name} is symbolic")
    return tuple(d for d in dims if isinstance(d, int))


def contiguous_strides(shape: Iterable[int]) -> tuple[int, ...]:
    """Row-major strides in elements: (2, 3, 4) -> (12, 4, 1)."""
    strides: list[int] = []
    step = 1
    for extent in reversed(tuple(shape)):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class TensorType:
    """Type of one SSA value.

    `strides` (elements); None means contiguous. Front ends give them to values of the boundary
    only; a rule may lay out an intermediate value with its dimensions in another order.
    """

    dtype: DType
    shape: Shape
    strides: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.shape) > MAX_RANK:
            raise InvalidGraph(f"rank {len(self.shape)} is above the limit of {MAX_RANK}")
        for dim in self.shape:
            if isinstance(dim, int) and not 0 <= dim < 2**48:
                raise InvalidGraph(f"shape {self.shape}: extent {dim} is out of range")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise InvalidGraph(f"strides {self.strides} do not fit shape {self.shape}")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)

    @property
    def elems(self) -> int:
        """Number of elements; the type must be static."""
        return math.prod(static_shape(self.shape))

    @property
    def nbytes(self) -> int:
        """Size of the contiguous tensor in bytes; the type must be static."""
        return self.elems * self.dtype.bytes

    @property
    def element_strides(self) -> tuple[int, ...]:
        """Strides in elements, contiguous ones where none are given (static types)."""
        if self.strides is not None:
            return self.strides
        return contiguous_strides(static_shape(self.shape))


@dataclass(frozen=True, slots=True)
class ValueDomain:
    """What is known of the values of an input; checks draw their test data from it.

    `low`/`high` bound the values inclusively: an index into a table of 50 rows has (0, 49).
    `finite` excludes infinities and NaN.
    """

    low: float | None = None
    high: float | None = None
    finite: bool = False

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InvalidGraph(f"value domain [{self.low}, {self.high}] is empty")
