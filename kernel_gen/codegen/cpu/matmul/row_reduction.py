"""Row statistics of the prologue: reductions over all of k, before the row is packed.

float4 part[4] = {0, 0, 0, 0};  for c: part[u] += x[c + u]…;  s = sum of all lanes
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.frame import Frame
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Axis, Reduce

COMBINE = {"sum": "add", "prod": "mul", "amax": "maximum", "amin": "minimum"}
"""Reductions that a prologue may hold, and the op that joins two partial results."""

CHAINS = 4  # independent partial vectors: the latency of an addition over its rate


def define_reductions(frame: Frame, row: Scope) -> None:
    """Emits each reduction of the left operand into `row` and announces its value there."""
    for position in frame.problem.left:
        statement = frame.problem.nest.statements[position]
        if isinstance(statement, Reduce):
            row.define(position, _reduce(frame, row, statement))


def _reduce(frame: Frame, row: Scope, reduce: Reduce) -> Value:
    emitter = frame.emitter
    held = reduce.dtype.compute
    kind = emitter.ops.c_type(held, vector=True)
    parts, neutral = emitter.fresh("parts"), _neutral(frame, reduce.op, held)
    row.add(f"{kind} {parts}[{CHAINS}];")
    row.add(f"for (int u = 0; u < {CHAINS}; ++u) {parts}[u] = {neutral.text};")
    depth = frame.problem.depth
    with frame.loops(row, depth[:-1]) as inner:
        _along(frame, inner, depth[-1], reduce, parts, neutral)
    for u in range(1, CHAINS):
        first, other = (Value(f"{parts}[{i}]", held, True) for i in (0, u))
        row.add(f"{parts}[0] = {_join(frame, reduce.op, held, first, other)};")
    return _across_lanes(frame, row, reduce, parts)


def _along(
    frame: Frame, scope: Scope, axis: Axis, reduce: Reduce, parts: str, neutral: Value
) -> None:
    """Whole groups of CHAINS vectors first, then vectors, then the rest."""
    lanes, end = frame.tiling.lanes, extent(axis)
    group = lanes * CHAINS
    scope = scope.open("{")
    scope.add("gaf_i64 c = 0;")
    wide = scope.open(f"for (; c + {group} <= {end}; c += {group}) {{")
    wide.add(f"#pragma GCC unroll {CHAINS}")
    chain = wide.open(
        f"for (int u = 0; u < {CHAINS}; ++u) {{",
        {axis.name: Binding(f"(c + u * {lanes})", vector=True)},
    )
    _accumulate(frame, chain, reduce, f"{parts}[u]", neutral)
    chain.close()
    wide.close()
    if end % group:
        bound = {axis.name: Binding("c", vector=True)}
        single = scope.open(f"for (; c + {lanes} <= {end}; c += {lanes}) {{", bound)
        _accumulate(frame, single, reduce, f"{parts}[0]", neutral)
        single.close()
    if end % lanes:
        rest = scope.open("{", {axis.name: Binding("c", vector=True)}, part="part")
        rest.add(f"const int part = (int)({end} - c);")
        _accumulate(frame, rest, reduce, f"{parts}[0]", neutral)
        rest.close()
    scope.close()


def _accumulate(frame: Frame, scope: Scope, reduce: Reduce, into: str, neutral: Value) -> None:
    """Joins one vector of the argument into `into`; lanes behind the row's end count nothing."""
    held = reduce.dtype.compute
    argument = frame.emitter.value(reduce.arg, scope)
    text = frame.emitter.ops.broadcast(
        Value(frame.emitter.ops.cast(argument, held), held, argument.vector)
    ).text
    if scope.part is not None:
        name = frame.emitter.fresh("x")
        scope.add(f"{frame.emitter.ops.c_type(held, vector=True)} {name} = {text};")
        scope.add(
            f"for (int l = part; l < {frame.tiling.lanes}; ++l) {name}[l] = {neutral.text}[l];"
        )
        text = name
    joined = _join(frame, reduce.op, held, Value(into, held, True), Value(text, held, True))
    scope.add(f"{into} = {joined};")


def _across_lanes(frame: Frame, row: Scope, reduce: Reduce, parts: str) -> Value:
    held = reduce.dtype.compute
    total = frame.emitter.fresh("total")
    row.add(f"{frame.emitter.ops.c_type(held, vector=False)} {total} = {parts}[0][0];")
    lane = Value(f"{parts}[0][l]", held, False)
    joined = _join(frame, reduce.op, held, Value(total, held, False), lane)
    row.add(f"for (int l = 1; l < {frame.tiling.lanes}; ++l) {total} = {joined};")
    value = Value(total, held, vector=False)
    return Value(frame.emitter.ops.cast(value, reduce.dtype), reduce.dtype, vector=False)


def _join(frame: Frame, op: str, held: DType, first: Value, other: Value) -> str:
    return frame.emitter.ops.compute(COMBINE[op], held, [first, other])


def _neutral(frame: Frame, op: str, held: DType) -> Value:
    """The value that joins without effect, in all lanes."""
    ops = frame.emitter.ops
    if op in ("sum", "prod"):
        return ops.broadcast(ops.literal(0 if op == "sum" else 1, held))
    sign = -1 if op == "amax" else 1
    if held.is_float:
        return ops.broadcast(ops.literal(sign * float("inf"), held))
    limit = (1 << (8 * held.bytes - 1)) - 1
    return ops.broadcast(ops.literal(limit if sign > 0 else -limit - 1, held))
