"""Which keys a block of rows is multiplied with, where positions say which it may see."""

from __future__ import annotations

from kernel_gen.codegen.cpu.attention.frame import Frame
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope


def finite_function(frame: Frame) -> str:
    """`void symbol_finite(args, status, b, low, high)`: the first key whose value is infinite or
    NaN, and the number of keys up to the last one; all keys and 0 if there is none. Such a value
    times a weight of zero is NaN, so its key must not be left out."""
    p = frame.problem
    scope = frame.function("finite", "gaf_i64 b, gaf_i64 &low, gaf_i64 &high")
    frame.declare(scope, p.batch, "b")
    name = p.keys.name
    scope.add(f"low = {p.t};")
    scope.add("high = 0;")
    head = f"for (gaf_i64 {name} = 0; {name} < {p.t}; ++{name}) {{"
    row = scope.open(head, {name: Binding(name)})
    row.add(f"{frame.vector} odd = {{}};")

    def test(block: Scope) -> None:
        value = frame.operand(p.value, block)
        if block.part is not None:
            live = frame.emitter.live_mask(block.part)
            value = f"({live} != 0 ? {value} : ({frame.vector}){{}})"
        block.add(f"odd += {value} * 0;")

    frame.vectors(row, p.cols, str(p.e), test)
    row.add("int found = 0;")
    row.add(f"for (int l = 0; l < {frame.tiling.lanes}; ++l) found |= odd[l] != 0;")
    row.add("if (!found) continue;")
    row.add(f"if ({name} < low) low = {name};")
    row.add(f"high = {name} + 1;")
    row.close()
    return frame.finish(scope)


def sight_function(frame: Frame) -> str:
    """`void symbol_sight(args, status, b, m0, rows, low, high)`: widens [low, high) to the keys
    that some row of a block may see. Where no row sees one, the first key is taken."""
    p = frame.problem
    parameters = "gaf_i64 b, gaf_i64 m0, gaf_i64 rows, gaf_i64 &low, gaf_i64 &high"
    scope = frame.function("sight", parameters)
    frame.declare(scope, p.batch, "b")
    row = scope.open("for (gaf_i64 r = 0; r < rows; ++r) {")
    row.add("const gaf_i64 m = m0 + r;")
    frame.declare(row, p.rows, "m")
    row.add(f"gaf_i64 from = 0, to = {p.t};")
    for limit in p.limits:
        text = frame.emitter.addresses.index(limit.at, row)
        name, sign = ("from", ">") if limit.begins else ("to", "<")
        row.add(f"if ({text} {sign} {name}) {name} = {text};")
    row.add("if (from >= to) continue;")
    row.add("if (from < low) low = from;")
    row.add("if (to > high) high = to;")
    row.close()
    scope.add("if (low >= high) low = 0, high = 1;")
    return frame.finish(scope)
