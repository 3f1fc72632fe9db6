"""`symbol_left` where rows are read in place through pointers: one for each row and run of steps.

Nothing of the operand is copied, whatever its strides and dilations; a run outside the operand
points at zeros, and one that is outside for all rows of a tile is left out of the sums. Listed:
[tile of rows][run][row of the tile]. After Dukhan, "The Indirect Convolution Algorithm" (2019).
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.matmul.frame import Frame, linear_position
from kernel_gen.codegen.cpu.matmul.inputs import Inputs
from kernel_gen.codegen.cpu.matmul.runs import left_runs, runs_of, zeros
from kernel_gen.codegen.cpu.matmul.text import index_text
from kernel_gen.ir.loopnest import Guard


def pointers_function(frame: Frame, inputs: Inputs) -> str:
    """Rows [lo, hi) of the left operand as pointers; rows that only fill up the last tile are the
    last row once more."""
    p, t = frame.problem, frame.tiling
    runs, count, s = left_runs(p), runs_of(p), frame.scalar
    assert runs is not None
    scope = frame.function("left", f"gaf_i64 b, gaf_i64 lo, gaf_i64 hi, {s} *dst")
    frame.declare(scope, p.batch, "b")
    scope.add(f"const {s} *const source = (const {s} *)args->operands[{runs.buffer}];")
    scope.add(f"const {s} **const table = (const {s} **)dst;")
    if runs.guards:
        at = f" + {zeros(p, runs) - 1}" if runs.step < 0 else ""
        scope.add(f"static const {s} zeros[{zeros(p, runs)}] = {{}};")
        scope.add(f"const {s} *const outside = zeros{at};")
    row = scope.open(f"for (gaf_i64 i = 0; lo + i < hi || i % {t.mr}; ++i) {{")
    row.add("const gaf_i64 m = lo + i < hi ? lo + i : hi - 1;")
    frame.declare(row, p.rows, "m")
    row.add(f"const {s} **const at = table + i / {t.mr} * {count * t.mr} + i % {t.mr};")
    with frame.loops(row, p.depth[:-1]) as run:
        place = linear_position(p.depth[:-1], t.mr)
        value = f"source + {index_text(runs.offset)}"
        if runs.guards:
            value = f"{_inside(runs.guards)} ? {value} : outside"
        run.add(f"at[{place}] = {value};")
    row.close()
    if inputs.marked:
        scope.add(_leave_out(inputs, count))
    return frame.finish(scope)


def _inside(guards: tuple[Guard, ...]) -> str:
    parts = []
    for guard in guards:
        text = index_text(guard.index)
        parts.append(f"{text} >= {guard.low} && {text} < {guard.high}")
    return "(" + " && ".join(parts) + ")"


def _leave_out(inputs: Inputs, count: int) -> str:
    """Marks the runs of a tile that are outside for all of its rows, unless zeros times what they
    meet may be NaN."""
    mr, scalar = inputs.tiling.mr, inputs.scalar
    flags = (f"({inputs.operand(b)})[{inputs.packed_elems(b)}] == 0" for b in inputs.marked)
    return f"""\
if ({" || ".join(flags)}) return;
for (gaf_i64 run = 0; run < (hi - lo + {mr - 1}) / {mr} * {count}; ++run) {{
  const {scalar} **const at = table + run * {mr};
  int used = 0;
  for (int i = 0; i < {mr}; ++i) used |= at[i] != outside;
  if (!used) at[0] = nullptr;
}}"""
