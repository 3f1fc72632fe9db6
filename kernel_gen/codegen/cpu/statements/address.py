"""C expressions of offsets, indices and guards at a point of the loops."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.flat.linear import Linear, dim_text
from kernel_gen.errors import InternalError
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Mod, Term, ValueTerm
from kernel_gen.ir.loopnest import Guard

ValueOf = Callable[[ValueTerm, Scope], Value]


class Addresses:
    """Writes indices; `value_of` gives the values that indirect ones read.

    With `lane` (a C expression) the position is that lane's, else the first lane's.
    """

    def __init__(self, unit: Unit, value_of: ValueOf) -> None:
        self._unit = unit
        self._value_of = value_of

    def offset(self, at: Linear, scope: Scope, lane: str | None = None) -> str:
        """An offset in elements."""
        parts = []
        for term, coeff in at.terms:
            text = self._term(term, scope, lane)
            parts.append(text if coeff.const == 1 else f"{coeff.text()} * {text}")
        if at.const.terms or not parts:
            parts.append(at.const.text())
        return "(" + " + ".join(parts) + ")"

    def index(self, index: Index, scope: Scope, lane: str | None = None) -> str:
        """The value of an index."""
        parts = []
        for term, coeff in index.terms:
            text = self._term(term, scope, lane)
            parts.append(text if coeff == 1 else f"{coeff} * {text}")
        if index.const or not parts:
            parts.append(str(index.const))
        return "(" + " + ".join(parts) + ")"

    def guard(self, guard: Guard, scope: Scope, lane: str | None = None) -> str:
        """The condition of a guard."""
        text = self.index(guard.index, scope, lane)
        return f"({text} >= {guard.low} && {text} < {dim_text(guard.high)})"

    def window(self, guard: Guard, scope: Scope) -> tuple[str, str]:
        """The lanes [low, high) that a guard lets through whose index grows by one from lane to
        lane; they may lie before the first or behind the last lane."""
        first = self.index(guard.index, scope)
        return f"({guard.low} - {first})", f"({dim_text(guard.high)} - {first})"

    def varies(self, index: Index, axis: str | None, scope: Scope) -> bool:
        """Whether lanes along `axis` have different values of the index."""
        if axis is not None and axis in index.axes():
            return True
        return any(self._value_of(term, scope).vector for term in index.values())

    def _term(self, term: Term, scope: Scope, lane: str | None) -> str:
        match term:
            case AxisTerm():
                binding = scope.binding(term.axis)
                if binding is None:
                    raise InternalError(f"axis {term.axis} is not bound here")
                return f"({binding.text} + {lane})" if binding.vector and lane else binding.text
            case ValueTerm():
                value = self._value_of(term, scope)
                return f"(gaf_i64){value.text}[{lane or 0}]" if value.vector else value.text
            case FloorDiv():
                inner = self.index(term.index, scope, lane)
                if never_negative(term.index):
                    return f"({inner} / {term.divisor})"
                return f"{self._floor_division()}({inner}, {term.divisor})"
            case Mod():
                inner = self.index(term.index, scope, lane)
                if never_negative(term.index):
                    return f"({inner} % {term.divisor})"
                quotient = f"{self._floor_division()}({inner}, {term.divisor})"
                return f"({inner} - {quotient} * {term.divisor})"

    def _floor_division(self) -> str:
        return self._unit.helper(
            "gaf_floordiv",
            "static inline gaf_i64 gaf_floordiv(gaf_i64 a, gaf_i64 b) "
            "{ return a / b - (a % b < 0); }",
        )


def is_affine(index: Index, axis: str) -> bool:
    """Whether the index is linear in `axis` and reads no values."""
    inner = [t for t, _ in index.terms if isinstance(t, FloorDiv | Mod)]
    return not any(axis in t.index.axes() for t in inner) and not index.statements()


def never_negative(index: Index) -> bool:
    """Whether no value of the index is negative, as far as its form tells."""
    terms_ok = all(
        coeff > 0
        and (isinstance(t, AxisTerm) or (isinstance(t, FloorDiv | Mod) and never_negative(t.index)))
        for t, coeff in index.terms
    )
    return terms_ok and index.const >= 0
