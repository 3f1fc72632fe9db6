"""One application of an op to operand types: what the typing rules and expansions read from.

The accessors check the attribute's form and raise InvalidGraph with op, rule and values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr, Attrs
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.types import MAX_RANK, Dim, Shape, Sym, TensorType

_DTYPES = frozenset(item.value for item in DType)


def describe(type: TensorType) -> str:
    """A type for messages: `f32[2, s0]`."""
    return f"{type.dtype}{describe_shape(type.shape)}"


def describe_shape(shape: Shape) -> str:
    return "[" + ", ".join(d.name if isinstance(d, Sym) else str(d) for d in shape) + "]"


def shape_attr(shape: Shape) -> tuple[int | str, ...]:
    """A shape as an attribute: symbols by name. (2, Sym("s0")) -> (2, "s0")."""
    return tuple(dim.name if isinstance(dim, Sym) else dim for dim in shape)


@dataclass(frozen=True, slots=True)
class Call:
    """`op` applied to operands of the given types."""

    op: str
    operands: tuple[TensorType, ...]
    attrs: Mapping[str, Attr]

    def fail(self, rule: str) -> NoReturn:
        """Raises InvalidGraph: op, the broken rule, operand types and attributes."""
        types = ", ".join(describe(type) for type in self.operands)
        given = ", ".join(f"{key}={value!r}"[:80] for key, value in self.attrs.items())
        raise InvalidGraph(f"{self.op}({types}{'; ' if given else ''}{given}): {rule}")

    @property
    def x(self) -> TensorType:
        """The first operand."""
        return self.operands[0]

    def flag(self, key: str) -> bool:
        value = self.attrs[key]
        if not isinstance(value, bool):
            self.fail(f"{key} must be true or false")
        return value

    def integer(self, key: str, low: int = 0) -> int:
        """An integer attribute of at least `low`."""
        value = self.attrs[key]
        if type(value) is not int or value < low:
            self.fail(f"{key} must be an integer of at least {low}")
        return value

    def integers(self, key: str, low: int = 0) -> tuple[int, ...]:
        """A tuple of integers of at least `low` each."""
        value = self.attrs[key]
        if not isinstance(value, tuple):
            self.fail(f"{key} must be a list of integers")
        found = tuple(item for item in value if type(item) is int and item >= low)
        if len(found) != len(value):
            self.fail(f"{key} must hold integers of at least {low}")
        return found

    def number(self, key: str) -> float:
        """A real number that is not a bool."""
        value = self.attrs[key]
        if type(value) is not int and type(value) is not float:
            self.fail(f"{key} must be a number")
        return value

    def numbers(self, key: str) -> tuple[float, ...]:
        """A tuple of real numbers."""
        value = self.attrs[key]
        if not isinstance(value, tuple):
            self.fail(f"{key} must be a list of numbers")
        found = tuple(item for item in value if type(item) in (int, float))
        if len(found) != len(value):
            self.fail(f"{key} must be a list of numbers")
        return found  # type: ignore[return-value]

    def dim(self, key: str, rank: int | None = None) -> int:
        """A dimension of the first operand (or of a tensor of `rank`), counted from 0."""
        limit = self.x.rank if rank is None else rank
        value = self.integer(key)
        if value >= limit:
            self.fail(f"{key} must be below the rank {limit}")
        return value

    def dims(self, key: str = "dims") -> tuple[int, ...]:
        """Dimensions of the first operand, ascending and unique."""
        value = self.integers(key)
        if list(value) != sorted(set(value)) or any(dim >= self.x.rank for dim in value):
            self.fail(f"{key} must be ascending, unique and below the rank {self.x.rank}")
        return value

    def shape(self, key: str = "shape") -> Shape:
        """A shape attribute; symbols stand in it by name."""
        value = self.attrs[key]
        if not isinstance(value, tuple) or len(value) > MAX_RANK:
            self.fail(f"{key} must be a list of at most {MAX_RANK} extents")
        return tuple(self._extent(key, item) for item in value)

    def _extent(self, key: str, item: Attr) -> Dim:
        if type(item) is int and 0 <= item < 2**48:
            return item
        if isinstance(item, str):
            return Sym(item)
        return self.fail(f"{key} must hold extents (0 to 2**48) or symbol names")

    def dtype(self, key: str = "dtype") -> DType:
        value = self.attrs[key]
        if not isinstance(value, str) or value not in _DTYPES:
            self.fail(f"{key} must be one of {', '.join(DType)}")
        return DType(value)


def make_call(op: str, operands: tuple[TensorType, ...], attrs: Attrs) -> Call:
    """The call, with op known, arity and attribute names checked."""
    call = Call(op, operands, dict(attrs))
    known = OPS.get(op)
    if known is None:
        raise InvalidGraph(f"unknown op {op[:80]!r}")
    if known.arity is not None and len(operands) != known.arity:
        call.fail(f"takes {known.arity} operands, not {len(operands)}")
    if known.arity is None and known.kind is not OpKind.FRAMEWORK and not operands:
        call.fail("takes at least one operand")
    if set(call.attrs) != set(known.attrs):
        call.fail(f"takes attributes {sorted(known.attrs)}, not {sorted(call.attrs)}")
    return call
