"""Several steps of an axis side by side in one nest, each value once.

    2 steps of i: out[i] = x[i] + x[i + 1]   ->   out[i]     = x[i]     + x[i + 1]
                                                  out[i + 1] = x[i + 1] + x[i + 2]

Rows of windows are loaded once for all outputs that read them.
"""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStatement, flat_operands
from kernel_gen.codegen.flat.simplify import shifted
from kernel_gen.ir.loopnest import Compute, Guard, IndexValue


def window_axis(nest: FlatNest, vector: str) -> str | None:
    """The axis along which neighbouring steps read the most vectors along `vector` twice, the
    innermost of equals; None where they read none twice, or positions come from memory."""
    if any(s.values for s in nest.loads()) or any(
        isinstance(s, IndexValue) and flat_operands(s) for s in nest.statements
    ):
        return None
    best, most = None, 0
    for axis in nest.axes:
        if axis.name != vector and isinstance(axis.extent, int):
            plain = inside(nest, axis.name, 1)[0]
            steps = [plain, shifted(plain, {axis.name: 1})]
            here, later = (
                {s for s in n.loads() if {vector, axis.name} <= s.at.axes()} for n in steps
            )
            if len(here & later) >= max(most, 1):
                best, most = axis.name, len(here & later)
    return best


def side_by_side(nest: FlatNest, axis: str, count: int) -> FlatNest:
    """The nest that does `count` steps of `axis` where `nest` does one: its statements in front,
    those of later steps behind. For nests without reductions and indirect reads."""
    statements, stores = list(nest.statements), list(nest.stores)
    known = {_key(s): number for number, s in reversed(list(enumerate(statements)))}
    for step in range(1, count):
        later = shifted(nest, {axis: step})
        places: list[int] = []
        for statement in later.statements:
            if isinstance(statement, Compute):
                statement = replace(statement, args=tuple(places[a] for a in statement.args))
            place = known.setdefault(_key(statement), len(statements))
            if place == len(statements):
                statements.append(statement)
            places.append(place)
        stores += [replace(s, statement=places[s.statement]) for s in later.stores]
    return replace(nest, statements=tuple(statements), stores=tuple(stores))


def _key(statement: FlatStatement) -> tuple[FlatStatement, str]:
    """What tells statements apart; 0.0 equals -0.0."""
    number = statement.fill if isinstance(statement, FlatLoad) else getattr(statement, "attrs", "")
    return statement, str(number)


def inside(nest: FlatNest, axis: str, count: int) -> tuple[FlatNest, int, int]:
    """The nest without the guards that only ask where along `axis` it is, and the range of first
    steps at which they hold for all of `count` steps side by side."""
    extent = nest.extent(axis)
    assert isinstance(extent, int)
    low, high = 0, extent - count + 1
    statements: list[FlatStatement] = []
    for statement in nest.statements:
        if isinstance(statement, FlatLoad):
            dropped = [g for g in statement.guards if _asks_only(g, axis)]
            kept = tuple(g for g in statement.guards if g not in dropped)
            for guard in dropped:
                first, end = _range(guard, axis)
                low, high = max(low, first), min(high, end - count + 1)
            statement = replace(statement, guards=kept)
        statements.append(statement)
    return replace(nest, statements=tuple(statements)), low, max(high, low)


def _asks_only(guard: Guard, axis: str) -> bool:
    plain = guard.index.axes() == {axis} and len(guard.index.terms) == 1
    return plain and guard.index.coeff(axis) > 0 and isinstance(guard.high, int)


def _range(guard: Guard, axis: str) -> tuple[int, int]:
    """The steps at which a guard holds: from the first to before the second."""
    coeff, const = guard.index.coeff(axis), guard.index.const
    assert isinstance(guard.high, int)
    return -((const - guard.low) // coeff), -((const - guard.high) // coeff)
