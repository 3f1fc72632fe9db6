"""Numbers as operands of instructions: blocks of equal lanes, read with stride 0."""

from __future__ import annotations

from kernel_gen.codegen.ascend.instructions.steps import Lanes, Step, Value
from kernel_gen.codegen.ascend.instructions.writer import Writer, literal


def with_number(w: Writer, name: str, v: Value, number: float, *, first: bool = False) -> Value:
    """`name` on fp32 and a number, which is read from a block with stride 0; `first`: on the
    number and the tensor."""
    ((table, lane),) = _blocks_of(w, [number])
    kind = f"<{name}Op, {'true' if first else 'false'}>"
    at = f"{table.token}[{lane}]"
    text = f"OneWise{kind}({{d}}, {v.token}, {at}, {w.count(v.lanes)});"
    return w.lanewise(text, v.ctype, v.lanes, v, table)


def polynomials(w: Writer, x: Value, *coefficients: tuple[float, ...]) -> list[Value]:
    """Polynomials in `x` by Horner's scheme, the highest power first, each step a product and
    a sum rounded once. They end together, step by step in turn: a step of one need not wait
    for the result of another's."""
    blocks = iter(_blocks_of(w, [c for one in coefficients for c in one[2:]]))
    added = [[next(blocks) for _ in one[2:]] for one in coefficients]
    made: list[Value | None] = [None] * len(coefficients)
    for left in range(max(map(len, added)), -1, -1):
        for number, (first, second, *_) in enumerate(coefficients):
            value, steps = made[number], added[number]
            if value is not None:
                made[number] = _fused_with_block(w, value, x, *steps[-left - 1])
            elif len(steps) == left:
                highest = x if first == 1.0 else w.scalar("Muls", x, first)
                made[number] = w.scalar("Adds", highest, second)
    return [value for value in made if value is not None]


def _blocks_of(w: Writer, numbers: list[float]) -> list[tuple[Value, int]]:
    """Blocks of 32 B of equal fp32 lanes: buffers and the lanes where they start there."""
    found: list[tuple[Value, int]] = []
    for start in range(0, len(numbers), 8):
        some = numbers[start : start + 8]
        lines = [f"Duplicate({{d}}[{8 * i}], {literal(c, 'float')}, 8);"
                 for i, c in enumerate(some)]  # fmt: skip
        table = w.table("\n".join(lines), Lanes.BLOCK, "float")
        found += [(table, 8 * i) for i in range(len(some))]
    return found


def _fused_with_block(w: Writer, a: Value, b: Value, table: Value, lane: int) -> Value:
    """a · b + c in the buffer of `a`, for the block c of equal lanes."""
    made = w.new(a.ctype, a.lanes)
    at = f"{table.token}[{lane}]"
    text = f"FusedOneWise({made.token}, {b.token}, {at}, {w.count(a.lanes)});"
    w.body.append(Step(text, (a, b, table), (made,), onto=a))
    return made
