"""Small pieces of C++: offsets, and the axes behind a linear loop variable."""

from __future__ import annotations

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Mod, Term
from kernel_gen.ir.loopnest import Axis


def index_text(index: Index) -> str:
    """C expression of an index over variables named like its axes."""
    parts = [_term_text(term, coeff) for term, coeff in index.terms]
    if index.const or not parts:
        parts.append(f"{index.const}ll")
    return "(" + " + ".join(parts) + ")"


def _term_text(term: Term, coeff: int) -> str:
    match term:
        case AxisTerm(axis):
            text = axis
        case FloorDiv(inner, divisor):
            inside = index_text(inner)
            text = f"({inside} / {divisor} - ({inside} % {divisor} < 0))"
        case Mod(inner, divisor):
            text = f"(({index_text(inner)} % {divisor} + {divisor}) % {divisor})"
        case _:
            raise AssertionError("offsets of direct operands hold no indirect terms")
    return text if coeff == 1 else f"{coeff}ll * {text}"


def split_axes(axes: tuple[Axis, ...], linear: str, indent: str) -> str:
    """Declarations of axis variables from their row-major linear position.

    split_axes((i0 < 3, i1 < 4), "m") -> const gaf_i64 i1 = m % 4, i0 = m / 4;
    """
    lines: list[str] = []
    rest = linear
    for position in range(len(axes) - 1, -1, -1):
        axis = axes[position]
        value = rest if position == 0 else f"({rest}) % {extent(axis)}"
        lines.append(f"{indent}const gaf_i64 {axis.name} = {value}; (void){axis.name};")
        rest = f"({rest}) / {extent(axis)}"
    return "\n".join(lines)
