"""One fusion group as loops: what is read, computed and written for each point of its axes.

A nest is an SSA list of statements. Every statement's value lives on a subset of the nest's axes
(a row mean on `i0` only, a matmul's product on `i0, i1`), so that reductions, broadcasts and matrix
products are all the same thing: statements that drop or join axes. No text of any dialect occurs
here; the NumPy executor, the C++ generator and an NPU generator read the same nest.

Example, softmax over the last axis of x[i0, i1]:

    0 load   x[i0, i1]          axes (i0, i1)
    1 reduce amax 0 over i1     axes (i0)
    2 compute sub 0 1           axes (i0, i1)
    3 compute exp 2             axes (i0, i1)
    4 reduce sum 3 over i1      axes (i0)
    5 compute div 3 4           axes (i0, i1)
    store out[i0, i1] = 5
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from enum import StrEnum

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr as Attr  # `Attrs` names it, and the codec looks it up here
from kernel_gen.ir.graph import Attrs, same_numbers
from kernel_gen.ir.index import Index
from kernel_gen.ir.types import Dim, TensorType


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop variable running over 0 … extent-1."""

    name: str
    extent: Dim


class BufferRole(StrEnum):
    INPUT = "input"
    CONSTANT = "constant"  # never changes between calls: may be packed at load
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Buffer:
    """An operand of the kernel: position in `LoopNest.buffers` is its position in the ABI.

    `replaces`, of an output, is the buffer that the program has it take the place of: a kernel may
    be able to write it over that buffer's elements (`KernelSource.in_place`).
    """

    type: TensorType
    role: BufferRole
    replaces: int | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """The condition `low <= index < high`; reads outside all guards give the fill value."""

    index: Index
    low: int
    high: Dim


@dataclass(frozen=True, slots=True)
class Load:
    """Read `buffer[index…]` (one index per dimension of the buffer), converted to `dtype`.

    With guards, points where one does not hold read nothing and give `fill`.
    """

    buffer: int
    index: tuple[Index, ...]
    dtype: DType
    guards: tuple[Guard, ...] = ()
    fill: float | int | bool = 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Load)
            and (self.buffer, self.dtype, self.index) == (other.buffer, other.dtype, other.index)
            and self.guards == other.guards
            and same_numbers(self.fill, other.fill)
        )


@dataclass(frozen=True, slots=True)
class Compute:
    """A scalar op of `kernel_gen.ir.ops` on earlier statements, in `dtype`.

    `cast` and comparisons read operands of another dtype; all other ops read operands of `dtype`.
    Ops without operands: `const` (attribute `value`).
    """

    op: str
    args: tuple[int, ...]
    dtype: DType
    attrs: Attrs = ()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Compute)
            and (self.op, self.args, self.dtype) == (other.op, other.args, other.dtype)
            and same_numbers(self.attrs, other.attrs)
        )


@dataclass(frozen=True, slots=True)
class IndexValue:
    """The value of an index expression as an i64 (iota, arange, positions)."""

    index: Index
    dtype: DType = DType.I64


@dataclass(frozen=True, slots=True)
class Reduce:
    """Reduce statement `arg` over `axes`: sum, prod, amax, amin, any, all, argmax, argmin.

    Argmax and argmin give the i64 position along the flattened `axes`, in that order.
    """

    op: str
    arg: int
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Contract:
    """Σ over `axes` of `lhs · rhs`: a matrix product, accumulated in `dtype` (at least fp32)."""

    lhs: int
    rhs: int
    axes: tuple[str, ...]
    dtype: DType


Statement = Load | Compute | IndexValue | Reduce | Contract


@dataclass(frozen=True, slots=True)
class Store:
    """Write the value of `statement` to `buffer[index…]`, converted to the buffer's dtype."""

    buffer: int
    index: tuple[Index, ...]
    statement: int
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A group as loops. `strict` rounds each intermediate to its storage type, as eager does
    (the rounding stands as explicit `cast` statements, so generators need not look at it)."""

    axes: tuple[Axis, ...]
    buffers: tuple[Buffer, ...]
    statements: tuple[Statement, ...]
    stores: tuple[Store, ...]

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if len(set(names)) != len(names):
            raise InvalidGraph(f"axes {names} are not unique")
        known = set(names)
        for position, statement in enumerate(self.statements):
            self._check(position, statement, known)
        for store in self.stores:
            if not 0 <= store.statement < len(self.statements):
                raise InvalidGraph(
                    f"store to buffer {store.buffer}: no statement {store.statement}"
                )
            if self._buffer(store.buffer, "store").role is not BufferRole.OUTPUT:
                raise InvalidGraph(f"store to buffer {store.buffer}, which is not an output")

    def _check(self, position: int, statement: Statement, known: set[str]) -> None:
        if any(not 0 <= used < position for used in operands(statement)):
            raise InvalidGraph(f"statement {position} reads a later statement: {statement}")
        if isinstance(statement, Reduce | Contract) and not set(statement.axes) <= known:
            raise InvalidGraph(f"statement {position} reduces over unknown axes: {statement.axes}")
        if isinstance(statement, Load):
            rank = self._buffer(statement.buffer, f"statement {position}").type.rank
            if len(statement.index) != rank:
                raise InvalidGraph(
                    f"statement {position} has {len(statement.index)} indices, rank {rank}"
                )

    def _buffer(self, buffer: int, place: str) -> Buffer:
        if not 0 <= buffer < len(self.buffers):
            raise InvalidGraph(f"{place}: there is no buffer {buffer}")
        return self.buffers[buffer]

    def axis(self, name: str) -> Axis:
        return next(axis for axis in self.axes if axis.name == name)

    def statement_axes(self) -> tuple[tuple[str, ...], ...]:
        """Axes on which each statement's value lives, in the order of `axes`."""
        order = [axis.name for axis in self.axes]
        found: list[frozenset[str]] = []
        for statement in self.statements:
            live: set[str] = set()
            for index in indices(statement):
                live |= index.axes()
            for used in operands(statement):
                live |= found[used]
            if isinstance(statement, Reduce | Contract):
                live -= set(statement.axes)
            found.append(frozenset(live))
        return tuple(tuple(name for name in order if name in live) for live in found)


def indices(statement: Statement) -> tuple[Index, ...]:
    """All index expressions that a statement evaluates, guards included."""
    match statement:
        case Load():
            return statement.index + tuple(guard.index for guard in statement.guards)
        case IndexValue():
            return (statement.index,)
        case _:
            return ()


def operands(statement: Statement) -> tuple[int, ...]:
    """Earlier statements whose values a statement reads, indirect indices included."""
    match statement:
        case Compute():
            return statement.args
        case Reduce():
            return (statement.arg,)
        case Contract():
            return (statement.lhs, statement.rhs)
        case _:
            return tuple(sorted({n for index in indices(statement) for n in index.statements()}))


def closure(
    roots: Iterable[int], reads: Callable[[int], Iterable[int]], stop: Container[int] = ()
) -> frozenset[int]:
    """`roots` and all that they are made from, told by what each one `reads`; nothing behind those
    in `stop`."""
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            if number not in stop:
                waiting += reads(number)
    return frozenset(found)


def reduced_axes(statements: Iterable[object]) -> frozenset[str]:
    """Axes that some of a nest's statements, with indices or with offsets, sum over."""
    found = [s.axes for s in statements if isinstance(s, Reduce | Contract)]
    return frozenset(axis for axes in found for axis in axes)
