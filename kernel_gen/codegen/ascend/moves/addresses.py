"""Addresses in global memory as C++ text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, Linear, Poly, dim_text
from kernel_gen.errors import InternalError
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Mod, Term, ValueTerm
from kernel_gen.ir.loopnest import Compute, Guard, IndexValue


@dataclass(frozen=True, slots=True)
class Place:
    """A global tensor of the kernel: its name in the text and the dtype that it stores."""

    name: str
    ctype: str


class Addresses:
    """Offsets and conditions as C++ text, with axes bound to text.

    `places` are those of buffers.
    """

    def __init__(
        self, nest: FlatNest, places: Mapping[int, Place], held: Mapping[int, str] | None = None
    ) -> None:
        self.nest = nest
        self.places = places
        self._held = held or {}

    def holding(self, held: Mapping[int, str]) -> Addresses:
        """The same with texts of statements whose values need not be read from global memory."""
        return Addresses(self.nest, self.places, held)

    def offset(self, at: Linear, bound: Mapping[str, str]) -> str:
        """Offset in elements."""
        parts = [] if at.const == Poly() else [at.const.text()]
        for term, coeff in at.terms:
            text = self._term(term, bound)
            if text != "0":
                parts.append(text if coeff.const == 1 else f"{coeff.text()} * {text}")
        return " + ".join(parts) or "0"

    def index(self, index: Index, bound: Mapping[str, str]) -> str:
        parts = [str(index.const)] if index.const or not index.terms else []
        for term, coeff in index.terms:
            text = self._term(term, bound)
            parts.append(text if coeff == 1 else f"{coeff} * {text}")
        return " + ".join(parts)

    def _term(self, term: Term, bound: Mapping[str, str]) -> str:
        match term:
            case AxisTerm():
                return bound[term.axis]
            case FloorDiv():
                return f"FloorDivide({self.index(term.index, bound)}, {term.divisor})"
            case Mod():
                inner = self.index(term.index, bound)
                return f"({inner} - FloorDivide({inner}, {term.divisor}) * {term.divisor})"
            case ValueTerm():
                return self.scalar(term.statement, bound)

    def guarded(self, guards: Sequence[Guard], bound: Mapping[str, str]) -> str:
        """The condition that all guards hold."""
        parts = []
        for g in guards:
            text = self.index(g.index, bound)
            parts.append(f"{text} >= {g.low} && {text} < {dim_text(g.high)}")
        return " && ".join(parts)

    def scalar(self, number: int, bound: Mapping[str, str]) -> str:
        """An integer statement as a scalar expression that reads global memory."""
        if number in self._held:
            return self._held[number]
        s = self.nest.statements[number]
        if isinstance(s, FlatLoad):
            name = self.places[s.buffer].name
            read = f"static_cast<int64_t>({name}.GetValue({self.offset(s.at, bound)}))"
            if not s.guards:
                return read
            return f"({self.guarded(s.guards, bound)} ? {read} : {int(s.fill)})"
        if isinstance(s, IndexValue):
            return f"({self.index(s.index, bound)})"
        if isinstance(s, Compute):
            if s.op == "const":
                return f"static_cast<int64_t>({dict(s.attrs)['value']}LL)"
            if scalar_op(s.op):
                args = [self.scalar(a, bound) for a in s.args]
                return _SCALAR_OPS[s.op].format(*args)
        raise InternalError(f"statement {number} is no scalar expression: {s}")


_SCALAR_OPS = {
    "cast": "{0}", "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})",
    "lt": "({0} < {1})", "le": "({0} <= {1})", "gt": "({0} > {1})", "ge": "({0} >= {1})",
    "eq": "({0} == {1})", "ne": "({0} != {1})", "where": "({0} ? {1} : {2})",
}  # fmt: skip


def scalar_op(op: str) -> bool:
    """Whether `Addresses.scalar` can write an op on integers."""
    return op in _SCALAR_OPS
