"""`symbol_softmax`: from products to weights, for one block of rows and keys.

For each row: the scores (mask, scale, bias applied) and their largest; where that is larger than
the row's so far, results and sum so far shrink; then the weights exp(score - largest) and their
sum. Weights stay in the place of the scores, undivided.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.attention.frame import Frame
from kernel_gen.codegen.cpu.attention.pairs import round_weights
from kernel_gen.codegen.cpu.attention.tiling import Operand
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value, literal_text
from kernel_gen.codegen.cpu.vectors import math as vecmath
from kernel_gen.ir.dtype import DType

_NEGATIVE = float("-inf")


def softmax_function(frame: Frame) -> str:
    """Rows [m0, m0 + rows) by keys [t0, t0 + cols). `first`: no keys came before."""
    p, t, s = frame.problem, frame.tiling, frame.scalar
    parameters = (
        f"gaf_i64 b, gaf_i64 m0, gaf_i64 rows, gaf_i64 t0, gaf_i64 cols, {s} *scores, {s} *sums, "
        f"{s} *tops, {s} *totals, int first"
    )
    scope = frame.function("softmax", parameters)
    frame.declare(scope, p.batch, "b")
    row = scope.open("for (gaf_i64 r = 0; r < rows; ++r) {")
    row.add("const gaf_i64 m = m0 + r;")
    frame.declare(row, p.rows, "m")
    row.add(f"{s} *const at = scores + r * {t.padded(t.keys)};")
    _find_top(frame, row)
    _shrink(frame, row)
    _weigh(frame, row)
    row.close()
    return frame.finish(scope)


def _find_top(frame: Frame, row: Scope) -> None:
    p, vector = frame.problem, frame.vector
    lowest = literal_text(_NEGATIVE, p.dtype)
    larger = vecmath.extreme_function(frame.unit, "max", p.dtype, frame.tiling.lanes)
    row.add(f"{vector} high = {lowest} - ({vector}){{}};")

    def put(block: Scope) -> None:
        block.add(f"const {vector} product = *(const {vector}u *)(at + c);")
        block.define(p.first, Value("product", p.dtype, vector=True))
        score = frame.operand(p.scores, block)
        if block.part is not None:
            live = frame.emitter.live_mask(block.part)
            score = f"{live} != 0 ? {score} : {lowest} - ({vector}){{}}"
        block.add(f"const {vector} score = {score};")
        block.add("*(" + vector + "u *)(at + c) = score;")
        block.add(f"high = {larger}(score, high); /* a NaN is left to the weights */")

    frame.vectors(row, p.keys, "cols", put, first="t0")


def _shrink(frame: Frame, row: Scope) -> None:
    """The row's new largest score; `base` is what is taken off, finite where nothing was seen."""
    p, t, s = frame.problem, frame.tiling, frame.scalar
    lowest = literal_text(_NEGATIVE, p.dtype)
    top = lane_maximum(frame)
    exp = vecmath.scalar_function(frame.unit, "exp", p.dtype)
    row.add(f"const {s} before = first ? {lowest} : tops[r], found = {top}(high);")
    row.add(f"const {s} now = found > before ? found : before;")
    row.add(f"const {s} base = now == {lowest} ? 0 : now;")
    row.add("tops[r] = now;")
    again = row.open("if (!first && before != now) {")
    again.add(f"const {s} shrink = {exp}(before - base);")
    again.add("totals[r] *= shrink;")
    again.add(f"{s} *const sum = sums + r * {t.padded(p.e)};")
    width = -(-p.e // t.lanes) * t.lanes
    again.add(f"for (gaf_i64 c = 0; c < {width}; c += {t.lanes})")
    again.add(f"  *({frame.vector} *)(sum + c) *= shrink;")
    again.close()


def _weigh(frame: Frame, row: Scope) -> None:
    vector, lanes = frame.vector, frame.tiling.lanes
    exp = falling_exp(frame)
    row.add(f"{vector} total = {{}};")
    row.add(f"for (gaf_i64 c = 0; c < cols; c += {lanes}) {{")
    row.add(f"  {vector} *const place = ({vector} *)(at + c);")
    row.add(f"  const {vector} weight = {exp}(*place - base);")
    if frame.tiling.value is Operand.PAIRS:  # a row's weights take the first half of its scores
        row.add(f"  total += {round_weights(frame)}((unsigned short *)at + c, weight);")
    else:
        row.add("  *place = weight;")
        row.add("  total += weight;")
    row.add("}")
    row.add(f"totals[r] = (first ? 0 : totals[r]) + {lane_total(frame)}(total);")


def falling_exp(frame: Frame) -> str:
    """Name of the vector function exp(x) for x <= 0."""
    p, lanes = frame.problem, frame.tiling.lanes
    op = "exp_falling" if p.dtype is DType.F32 else "exp"
    return vecmath.vector_function(frame.unit, op, p.dtype, lanes)


def lane_maximum(frame: Frame) -> str:
    """`scalar f(vector)`: the largest lane."""
    larger = vecmath.extreme_function(frame.unit, "max", frame.problem.dtype, frame.tiling.lanes)
    return _across(frame, "maximum", f"x = {larger}(x, OTHER);")


def lane_total(frame: Frame) -> str:
    """`scalar f(vector)`: the sum of all lanes, halves first."""
    return _across(frame, "total", "x += OTHER;")


def _across(frame: Frame, name: str, step_text: str) -> str:
    lanes, v = frame.tiling.lanes, frame.vector
    full = f"gaf_lane_{name}_{v}"
    lines = [f"static inline {frame.scalar} {full}({v} x) {{"]
    step = lanes // 2
    while step:
        order = ", ".join(str((lane + step) % lanes) for lane in range(lanes))
        lines.append("  " + step_text.replace("OTHER", f"__builtin_shufflevector(x, x, {order})"))
        step //= 2
    return frame.unit.helper(full, "\n".join([*lines, "  return x[0];", "}"]))
