"""Sums whose parts threads share out: for a product of few rows and columns, and long sums.

    share (batch, parts of k) out;  for KC steps of a part: pack A, pack B, block
    a barrier
    share (batch, tiles) out;  add up the parts of a tile, in order;  its epilogue

The parts are the schedule's, whatever the team, so that results do not depend on it. What is packed
at a time, KC steps of all rows and columns, stays in the caches.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.matmul.block import Block
from kernel_gen.codegen.cpu.matmul.inputs import Inputs
from kernel_gen.codegen.cpu.matmul.scratch import part_elems, right_bytes
from kernel_gen.codegen.cpu.matmul.text import split_axes
from kernel_gen.codegen.cpu.matmul.tiling import Operand

# A kernel on one thread may itself run inside someone's parallel region: no barrier then.
BARRIER = "  if (team > 1) {\n#pragma omp barrier\n  }\n"


@dataclass(frozen=True, slots=True)
class ByDepth:
    """Text of the functions for one part and for finished tiles, and of a thread's share."""

    inputs: Inputs

    def text(self) -> str:
        return "\n".join((self._part(), self._finish()))

    def share(self) -> str:
        """The parts of thread `t` of `team`, then its tiles, once all parts are there."""
        p, t, symbol = self.inputs.problem, self.inputs.tiling, self.inputs.symbol
        units, grain = p.b * t.parts, t.grain(p)
        steps = -(-p.k // grain)
        panel = ", panel" if p.finishes_rows else ""
        return f"""\
  for (gaf_i64 u = {units}ll * t / team, e = {units}ll * (t + 1) / team; u < e; ++u) {{
    const gaf_i64 part = u % {t.parts}, end = {steps}ll * (part + 1) / {t.parts} * {grain};
    {symbol}_part(args, status, u / {t.parts}, {steps}ll * part / {t.parts} * {grain},
        end < {p.k} ? end : {p.k}, own_left, own_right, sums + u * {part_elems(p, t)}ll);
  }}
{BARRIER}  {symbol}_finish(args, status, sums, t, team{panel});
"""

    def _part(self) -> str:
        """`symbol_part`: the sums of product b over the steps [from, to) of k."""
        p, t, s, symbol = (
            self.inputs.problem,
            self.inputs.tiling,
            self.inputs.scalar,
            self.inputs.symbol,
        )
        return f"""\
static void {symbol}_part(const gaf_kernel_args *args, int &status, gaf_i64 b, gaf_i64 from,
    gaf_i64 to, {s} *own_left, {s} *own_right, {s} *sums) {{
  (void)own_left; (void)own_right;
{split_axes(p.batch, "b", "  ")}
  gaf_i64 kb = from;
  do {{
    const gaf_i64 k = to - kb < {t.step(p)} ? to - kb : {t.step(p)};
{self._left()}
{self._right()}
    {symbol}_block(args, status, b, 0, {p.m}, 0, {t.col_tiles(p)}, 0, left, right, sums,
        kb, k, kb == from);
    kb += k;
  }} while (kb < to);
}}"""

    def _left(self) -> str:
        s = self.inputs.scalar
        if self.inputs.left is not None:
            return f"    const {s} *const left = {self.inputs.operand(self.inputs.left.buffer)};"
        return (
            f"    {self.inputs.symbol}_left(args, status, b, 0, {self.inputs.problem.m},"
            f" kb, kb + k, own_left);\n    const {s} *const left = own_left;"
        )

    def _right(self) -> str:
        p, t = self.inputs.problem, self.inputs.tiling
        calls: list[str] = []
        if self.inputs.right is not None:
            places = [self.inputs.operand(direct.buffer) for direct in self.inputs.right]
        elif t.right is Operand.LOAD:
            places = [self.inputs.packed_at(section) for section in range(p.sections)]
        else:
            size = right_bytes(p, t, t.col_tiles(p)) // p.product.dtype.bytes
            places = [f"own_right + {section * size}ll" for section in range(p.sections)]
            calls = [
                f"    {self.inputs.symbol}_right{section}(args, status, b, 0, {t.col_tiles(p)},"
                f" kb, kb + k, {place});"
                for section, place in enumerate(places)
            ]
        declared = f"    const {self.inputs.scalar} *const right[] = {{{', '.join(places)}}};"
        return "\n".join([*calls, declared])

    def _finish(self) -> str:
        """`symbol_finish`: thread t's share of the tiles, parts added up, epilogue applied."""
        p, t, s = self.inputs.problem, self.inputs.tiling, self.inputs.scalar
        block, rows = Block(self.inputs), t.row_tiles(p)
        tiles, size = rows * t.col_tiles(p), p.sections * t.mr * t.nr
        panel, origin = "", ""
        if p.finishes_rows:
            panel, origin = f", {s} *panel", "    const gaf_i64 origin = 0;\n"
        return f"""\
static void {self.inputs.symbol}_finish(const gaf_kernel_args *args, int &status, {s} *sums,
    gaf_i64 t, gaf_i64 team{panel}) {{
  const gaf_i64 end = {p.b * tiles}ll * (t + 1) / team;
  for (gaf_i64 u = {p.b * tiles}ll * t / team; u < end; ++u) {{
    const gaf_i64 b = u / {tiles}, p = u % {tiles} / {rows}, m = u % {rows} * {t.mr};
    const gaf_i64 rows = {p.m} - m < {t.mr} ? {p.m} - m : {t.mr};
{block.column_tile()}
{block.row_shift()}
{origin}    {s} *const tile = sums + b * {t.parts * part_elems(p, t)}ll + u % {tiles} * {size}ll;
    for (int part = 1; part < {t.parts}; ++part) {{
      const {s} *const more = tile + part * {part_elems(p, t)}ll;
      for (int i = 0; i < {size}; ++i) tile[i] += more[i];
    }}
    {block.call_after()}
  }}
}}"""
