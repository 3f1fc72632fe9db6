"""The block function: loops over k, column tiles and row tiles around the register tile.

for KC steps of k: for each column tile: for each row tile: the register tile;
with the last k, the epilogue of that tile

Where the depth is split, the block is one step of the first loop, and the epilogue follows when all
parts are added up (`by_depth`).

Of several sections one runs over all row tiles before the next, so that one packed column tile at a
time is in the first-level cache; their sums wait until the last of them is done.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.inputs import Inputs
from kernel_gen.codegen.cpu.matmul.runs import runs_of
from kernel_gen.codegen.cpu.matmul.text import split_axes
from kernel_gen.codegen.cpu.matmul.tiling import Operand
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C

LINE = 64  # bytes that one prefetch brings


@dataclass(frozen=True, slots=True)
class Block:
    """Text of `symbol_block`."""

    inputs: Inputs

    def text(self) -> str:
        """Rows [m0, m1) by column tiles [p0, p1) of one product. A packed left operand begins at
        m0, a packed right one at column tile pr; operands read in place are whole. Where the depth
        is split, k steps of it from kb on, the first of a part if `first`."""
        p, t, s = self.inputs.problem, self.inputs.tiling, self.inputs.scalar
        return f"""\
static void {self.inputs.symbol}_block(const gaf_kernel_args *args, int &status, gaf_i64 b,
    gaf_i64 m0, gaf_i64 m1, gaf_i64 p0, gaf_i64 p1, gaf_i64 pr, const {s} *left,
    const {s} *const *right, {s} *tiles{self._panel_parameters()}{self._step_parameters()}) {{
  const gaf_i64 row_tiles = (m1 - m0 + {t.mr - 1}) / {t.mr}; (void)row_tiles; (void)pr;
{split_axes(p.batch, "b", "  ")}
{self._begin_steps()}
    for (gaf_i64 p = p0; p < p1; ++p) {{
{self.column_tile()}
{split_axes(p.cols[:-1], "slab", "      ")}
{self._right_pointers()}
{self._row_tiles()}
    }}
{self._end_steps()}
}}"""

    def column_tile(self) -> str:
        """Declares where column tile `p` lies, and by how many columns it moves left: the last one
        of columns that are read in place stays inside the operand."""
        p, t = self.inputs.problem, self.inputs.tiling
        moves = self.inputs.right is not None and t.right is not Operand.DOT
        shift = f"(cols == {t.nr} ? {t.nr} : {t.tail_nv(p) * t.lanes}) - cols" if moves else "0"
        return f"""\
      const gaf_i64 slab = p / {t.slab_tiles(p)}, n0 = p % {t.slab_tiles(p)} * {t.nr};
      const gaf_i64 rest = {t.slab_cols(p)} - n0, cols = rest < {t.nr} ? rest : {t.nr};
      const gaf_i64 col_shift = {shift}; (void)col_shift;"""

    def _begin_steps(self) -> str:
        p, t = self.inputs.problem, self.inputs.tiling
        if t.splits_depth:
            return "  {"
        return f"""\
  gaf_i64 kb = 0;
  do {{
    const gaf_i64 k = {p.k} - kb < {t.kc} ? {p.k} - kb : {t.kc};"""

    def _end_steps(self) -> str:
        if self.inputs.tiling.splits_depth:
            return "  }"
        return f"    kb += k;\n  }} while (kb < {self.inputs.problem.k});"

    def _step_parameters(self) -> str:
        return ", gaf_i64 kb, gaf_i64 k, int first" if self.inputs.tiling.splits_depth else ""

    def _row_tiles(self) -> str:
        """One pass over the row tiles; of several sections one for each, and one for the end."""
        p = self.inputs.problem
        last = f"if (kb + k == {p.k})"
        if self.inputs.tiling.splits_depth:
            return "\n".join(self._pass(self._call_micro_kernel(n)) for n in range(p.sections))
        if p.sections == 1:
            after = f"        {last}\n          {self.call_after()}"
            return self._pass(self._call_micro_kernel(0), after)
        passes = [self._pass(self._call_micro_kernel(n)) for n in range(p.sections)]
        after = self._pass(f"        {self.call_after()}")
        return "\n".join([*passes, f"      {last}", after])

    def _pass(self, *body: str) -> str:
        t = self.inputs.tiling
        lines = [
            f"      for (gaf_i64 m = m0; m < m1; m += {t.mr}) {{",
            f"        const gaf_i64 rows = m1 - m < {t.mr} ? m1 - m : {t.mr}; (void)rows;",
            self._left_pointer(),
            f"        {self.inputs.scalar} *tile = {self._tile()}; (void)rows_at;",
            *body,
            "      }",
        ]
        return "\n".join(lines)

    def _tile(self) -> str:
        """Where the sums of a tile wait."""
        p, t = self.inputs.problem, self.inputs.tiling
        size = p.sections * t.mr * t.nr
        if t.splits_depth or p.k > t.kc:
            return f"tiles + ((p - p0) * row_tiles + (m - m0) / {t.mr}) * {size}"
        return f"tiles + (m - m0) / {t.mr} * {size}" if p.sections > 1 else "tiles"

    def call_after(self) -> str:
        """The epilogue of the sums at `tile`."""
        p, t = self.inputs.problem, self.inputs.tiling
        at = f"tile + row_shift * {t.nr} + col_shift"
        if p.finishes_rows:
            at += ", origin, panel"
        return f"{self.inputs.symbol}_after(args, status, b, m, rows, slab, n0, cols, {at});"

    def _panel_parameters(self) -> str:
        """Where whole rows of sums wait, for an epilogue that needs them."""
        if not self.inputs.problem.finishes_rows or self.inputs.tiling.splits_depth:
            return ""
        return f", gaf_i64 origin, {self.inputs.scalar} *panel"

    def _left_pointer(self) -> str:
        """Where the tile's rows begin."""
        p, t, left = self.inputs.problem, self.inputs.tiling, self.inputs.left
        indent = "        "
        if left is None:
            blocked = t.left_blocks(p) > 1
            depth = f"kb / {t.kc} * {t.left_rows(p) * t.left_ld(p)}ll" if blocked else "kb"
            depth = "0" if t.splits_depth else depth
            if t.left is Operand.POINTERS:
                depth = f"kb / {self._run()} * {t.mr * t.left_ld(p) // runs_of(p)}"
            return (
                f"{self.row_shift()}\n"
                f"{indent}const {self.inputs.scalar} *rows_at = left"
                f" + (m - m0) * {t.left_ld(p)}ll + {depth};"
            )
        return (
            f"{self.row_shift()}\n"
            f"{indent}const {self.inputs.scalar} *rows_at = left + {left.offset}"
            f" + (m - row_shift) * {left.line_stride}ll + kb * {left.step}ll;"
        )

    def _run(self) -> int:
        return extent(self.inputs.problem.depth[-1])

    def row_shift(self) -> str:
        """Declares by how many rows a tile moves up: the last one of rows that are read in place
        stays inside the operand; its first rows were done by the tile before."""
        shift = "0" if self.inputs.left is None else f"{self.inputs.tiling.mr} - rows"
        return f"        const gaf_i64 row_shift = {shift};"

    def _right_pointers(self) -> str:
        """The column tile of each section."""
        p, t = self.inputs.problem, self.inputs.tiling
        indent = "      "
        tail = t.tail_nv(p) * t.lanes
        if self.inputs.right is None:
            ld = str(t.nr) if tail == t.nr else f"(cols > {tail} ? {t.nr} : {tail})"
            begin = "0" if t.cuts_right else f"{self._packed('kb')} * {ld}"
            panel = t.packed(t.right_depth(p)) * t.nr
            at = [f"(p - pr) * {panel}ll + {begin}"] * p.sections
        elif t.right is Operand.DOT:
            at = [f"{d.offset} + n0 * {d.line_stride}ll + kb" for d in self.inputs.right]
        else:
            at = [f"{d.offset} + n0 - col_shift + kb * {d.step}ll" for d in self.inputs.right]
        places = [f"right[{section}] + {text}" for section, text in enumerate(at)]
        stored = self.inputs.right[0].stored if self.inputs.right is not None else None
        if stored is not None:
            s, kept = self.inputs.scalar, f"(const {SCALAR_C[stored]} *)right"
            places = [f"(const {s} *)({kept}[{n}] + {text})" for n, text in enumerate(at)]
        return "\n".join(
            f"{indent}const {self.inputs.scalar} *const panel{section} = {place};"
            for section, place in enumerate(places)
        )

    def _packed(self, steps: str) -> str:
        """Packed elements along an even number of steps of k."""
        return f"{steps} / 2" if self.inputs.tiling.pairs else steps

    def _fetch_next(self, section: int) -> str:
        """This row tile's share of the panel that the block reads next, into the second-level
        cache: the next section's, the next column tile's, or the first one of the next steps."""
        p, t, s = self.inputs.problem, self.inputs.tiling, self.inputs.scalar
        if not t.fetches_next:
            return ""
        panel = t.packed(t.right_depth(p)) * t.nr
        lines = -(-t.packed(t.kc) * t.nr * p.product.dtype.bytes // LINE)
        later = f"(p0 - pr) * {panel}ll + {self._packed(f'(kb + {t.kc})')} * {t.nr}ll"
        if t.cuts_right:  # the next steps are not packed yet
            later = "0"
        after = f"p + 1 < p1 ? panel0 + {panel} : right[0] + {later}"
        if section + 1 < p.sections:
            after = f"panel{section + 1}"
        return f"""\
        const {s} *const next = {after};
        const gaf_i64 share = ({lines} + row_tiles - 1) / row_tiles;
        const char *const begin = (const char *)next + (m - m0) / {t.mr} * share * {LINE};
        for (gaf_i64 i = 0; i < share; ++i) __builtin_prefetch(begin + i * {LINE}, 0, 2);
"""

    def _call_micro_kernel(self, section: int) -> str:
        t, p, symbol = self.inputs.tiling, self.inputs.problem, self.inputs.symbol
        dot = t.right is Operand.DOT
        tile = f"tile + {section * t.mr * t.nr}"
        k = "(k + 1) / 2" if t.pairs else "k"
        first = "first" if t.splits_depth else "kb == 0"
        more = ", cols" if dot else ""
        if t.left is Operand.POINTERS:
            more = f", kb % {self._run()}"
        call = f"(rows_at, panel{section}, {tile}, {k}, {first}{more});"
        ahead = self._fetch_next(section)
        if dot or t.tail_nv(p) == t.nv:
            return f"{ahead}        {symbol}_tile{call}"
        wide = f"cols > {t.tail_nv(p) * t.lanes}"
        return f"{ahead}        if ({wide}) {symbol}_tile{call}\n        else {symbol}_tail{call}"
