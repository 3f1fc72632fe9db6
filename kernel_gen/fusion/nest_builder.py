"""Statements of a nest under construction: equal statements are one statement."""

from __future__ import annotations

from collections.abc import Iterable

from kernel_gen.fusion.region import Scalar
from kernel_gen.fusion.views import RefusedError
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.index import Index
from kernel_gen.ir.loopnest import (
    Compute,
    Contract,
    Guard,
    Load,
    Reduce,
    Statement,
    indices,
    operands,
)
from kernel_gen.ir.types import Dim

# Windows over joined pieces over windows multiply: beyond it a compiler takes tens of seconds.
MAX_STATEMENTS = 500


class NestBuilder:
    """Axes and statements, numbered by value. Loads name values of the region as their buffers."""

    def __init__(self) -> None:
        self.extents: dict[str, Dim] = {}
        self.statements: list[Statement] = []
        self.live: list[frozenset[str]] = []  # axes on which each statement's value lives
        self._known: dict[object, int] = {}

    def fresh_axis(self, prefix: str, extent: Dim) -> str:
        """A new axis, named `prefix` and a number."""
        name = f"{prefix}{sum(1 for axis in self.extents if axis.startswith(prefix))}"
        self.extents[name] = extent
        return name

    def add(self, statement: Statement) -> int:
        """The number of `statement`, an equal earlier one if there is one."""
        key = _key(statement)
        if key not in self._known:
            if len(self.statements) >= MAX_STATEMENTS:
                raise RefusedError("group-too-large", f"more than {MAX_STATEMENTS} statements")
            self._known[key] = len(self.statements)
            self.statements.append(statement)
            self.live.append(self._live(statement))
        return self._known[key]

    def compute(self, op: str, args: tuple[int, ...], dtype: DType) -> int:
        """A Compute statement without attributes."""
        return self.add(Compute(op, args, dtype))

    def const(self, value: Scalar, dtype: DType) -> int:
        """A scalar of `dtype`."""
        if dtype is DType.BOOL:
            plain: Scalar = bool(value)
        else:
            plain = float(value) if dtype.is_float else int(value)
        return self.add(Compute("const", (), dtype, attrs(value=plain)))

    def cast(self, statement: int, dtype: DType) -> int:
        """`statement` converted to `dtype`; itself where it has that dtype already, or was
        widened from it."""
        made = self.statements[statement]
        if made.dtype is dtype:
            return statement
        if isinstance(made, Compute) and made.op == "cast" and made.dtype is dtype.compute:
            (source,) = made.args
            if self.statements[source].dtype is dtype:
                return source
        return self.compute("cast", (statement,), dtype)

    def live_axes(self, at: Iterable[Index]) -> frozenset[str]:
        """Axes on which the indices depend, through indirect reads too."""
        found: set[str] = set()
        for index in at:
            found |= index.axes()
            for statement in index.statements():
                found |= self.live[statement]
        return frozenset(found)

    def _live(self, statement: Statement) -> frozenset[str]:
        found = set(self.live_axes(indices(statement)))
        for used in operands(statement):
            found |= self.live[used]
        if isinstance(statement, Reduce | Contract):
            found -= set(statement.axes)
        return frozenset(found)


def _key(statement: Statement) -> object:
    """Identity of a statement; 0.0 and -0.0, equal to Python, are different constants."""
    if isinstance(statement, Load) and statement.guards:
        return statement, repr(statement.fill)
    if isinstance(statement, Compute) and statement.op == "const":
        return "const", statement.dtype, repr(statement.attrs)
    return statement


def guarded(guards: tuple[Guard, ...], index: Index, low: int, high: Dim) -> tuple[Guard, ...]:
    """`guards` and one more, each once."""
    new = Guard(index, low, high)
    return guards if new in guards else (*guards, new)
