"""Operands packed as pairs of bf16, which one instruction multiplies and adds up in fp32.

A pair of keys' and queries' elements are neighbours along the depth: what is stored as bf16 is
multiplied exactly. A pair of values' elements are neighbours along the keys, and so are the
weights, which are rounded to bf16: by 2^-9 of themselves at most, as the results are when they are
stored. What a row's weights sum up to is the sum of the rounded ones, so that results stay
averages of values.

AVX512_BF16 takes subnormal factors and sums for zero (seen on a Zen 4): errors below 2^-126 times
the other factor.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.attention.frame import Frame
from kernel_gen.codegen.cpu.attention.problem import Problem
from kernel_gen.codegen.cpu.matmul.fused import join_halves
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.vectors.stored import narrowed, widened
from kernel_gen.codegen.cpu.vectors.types import Lanes, vector_type
from kernel_gen.codegen.flat.linear import FlatLoad
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Axis


def pairs_depth(problem: Problem) -> bool:
    """Whether pairs along the depth round nothing: queries and keys are bf16 as stored."""
    return len(problem.depth) == 1 and all(
        _is_stored_bf16(problem, root) for root in (problem.query, problem.key)
    )


def pairs_keys(problem: Problem) -> bool:
    """Whether pairs along the keys round no more than the results are: these and the values are
    stored as bf16."""
    buffers = problem.nest.buffers
    kept = {buffers[store.buffer].type.dtype for store in problem.nest.stores}
    return kept == {DType.BF16} and _is_stored_bf16(problem, problem.value)


def _is_stored_bf16(problem: Problem, position: int) -> bool:
    load = problem.nest.statements[position]
    if not isinstance(load, FlatLoad) or load.guards or problem.dtype is not DType.F32:
        return False
    return problem.nest.buffers[load.buffer].type.dtype is DType.BF16


def joined_steps(
    frame: Frame, scope: Scope, axis: Axis, statement: int, vectors: tuple[Axis, str, str]
) -> None:
    """Vectors of two neighbouring steps of `axis`, joined, to row `step / 2` of `panel`.

    `vectors`: the axis that they run along, where it begins, and their number of elements. Rows
    are `ld` elements; behind an odd last step there are zeros.
    """
    along, first, count = vectors
    extent, vector = axis.extent, frame.vector
    assert isinstance(extent, int)
    join = join_halves(frame.unit, vector, frame.tiling.lanes)

    def rows(head: str, steps: tuple[str, ...]) -> None:
        row = scope.open(head)

        def put(block: Scope) -> None:
            values = [
                frame.operand(statement, block.inline({axis.name: Binding(step)})) for step in steps
            ]
            values += [f"({vector}){{}}"] * (2 - len(values))
            block.add(f"*({vector}u *)(panel + s / 2 * ld + c) = {join}({', '.join(values)});")

        frame.vectors(row, along, count, put, first=first)
        row.close()

    rows(f"for (gaf_i64 s = 0; s + 2 <= {extent}; s += 2) {{", ("s", "(s + 1)"))
    if extent % 2:
        rows(f"for (gaf_i64 s = {extent - 1}; s < {extent}; ++s) {{", ("s",))


def round_weights(frame: Frame) -> str:
    """`vector f(u16 *at, vector x)`: stores x as bf16 and returns what is stored."""
    unit, lanes = frame.unit, frame.tiling.lanes
    half = vector_type(unit, DType.BF16, lanes)
    rounded = narrowed(unit, DType.BF16, Lanes(lanes), "x")
    if lanes == 16:
        rounded = _converted(frame, half, rounded)
    back = widened(unit, DType.BF16, Lanes(lanes), "h")
    name = f"gaf_round_weights_{frame.vector}"
    return unit.helper(
        name,
        f"static inline {frame.vector} {name}(unsigned short *at, {frame.vector} x) {{\n"
        f"  const {half} h = {rounded};\n"
        f"  *({half}u *)at = h;\n"
        f"  return {back};\n}}",
    )


def _converted(frame: Frame, half: str, plain: str) -> str:
    """By the processor where it can."""
    name = f"gaf_to_bf16_{frame.vector}"
    frame.unit.helper(
        name,
        f"static inline {half} {name}({frame.vector} x) {{\n"
        "#ifdef __AVX512BF16__\n"
        f'  {half} h;\n  asm("vcvtneps2bf16 %1, %0" : "=v"(h) : "v"(x));\n  return h;\n'
        f"#else\n  return {plain};\n#endif\n}}",
    )
    return f"{name}(x)"
