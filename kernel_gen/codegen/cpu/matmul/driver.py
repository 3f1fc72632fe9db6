"""How threads share out the work of a matmul kernel.

rows / batch:  share (batch, row tiles) out;  pack MC rows of A;  for NC columns: block
cols:          pack all of A together;  share (batch, column tiles) out;
               for NC columns: pack B;  for MC rows: block
depth:         see `by_depth`
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.matmul.by_depth import BARRIER, ByDepth
from kernel_gen.codegen.cpu.matmul.inputs import Inputs
from kernel_gen.codegen.cpu.matmul.scratch import Scratch, left_bytes, right_bytes, scratch
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split


@dataclass(frozen=True, slots=True)
class Driver:
    """Text of the function that is one thread's share, and of the kernel's body."""

    inputs: Inputs

    def text(self) -> str:
        by_depth = (ByDepth(self.inputs).text(),) if self.inputs.tiling.splits_depth else ()
        return "\n".join((*by_depth, self._share(), self._body()))

    def _share(self) -> str:
        """The part of thread `t` of `team`."""
        s, parts = self.inputs.scalar, scratch(self.inputs.problem, self.inputs.tiling)
        return f"""\
static void {self.inputs.symbol}_share(const gaf_kernel_args *args, int &status, char *shared,
    char *own, gaf_i64 t, gaf_i64 team) {{
  {s} *const shared_left = ({s} *)shared; (void)shared_left;
  {s} *const shared_right = ({s} *)(shared + {parts.shared_left}); (void)shared_right;
  {s} *const own_left = ({s} *)own; (void)own_left;
  {s} *const own_right = ({s} *)(own + {parts.own_left}); (void)own_right;
  {s} *const tiles = ({s} *)(own + {parts.own_left + parts.own_right}); (void)tiles;
  {s} *const sums = ({s} *)(shared + {parts.shared - parts.shared_sums}); (void)sums;
{self._panels(parts)}{self._work()}}}"""

    def _work(self) -> str:
        """What a thread does, by what threads share out."""
        match self.inputs.tiling.split:
            case Split.DEPTH:
                return ByDepth(self.inputs).share() + self._finish_shared_rows()
            case Split.COLS:
                return self._by_cols() + self._finish_shared_rows()
            case _:
                return self._by_rows()

    def _panels(self, parts: Scratch) -> str:
        """Where whole rows of sums wait, and a thread's scratch for finishing them."""
        if not self.inputs.problem.finishes_rows:
            return ""
        own = parts.own_left + parts.own_right + parts.own_tiles
        shared = parts.shared_left + parts.shared_right
        at = f"shared + {shared}" if self.inputs.tiling.split.meets_rows else f"own + {own}"
        s = self.inputs.scalar
        return f"""\
  {s} *const panel = ({s} *)({at});
  char *const mine = own + {own + parts.own_panel};
"""

    def _panel_from(self, origin: str) -> str:
        """The panel as arguments of the block function: its first row is `origin`."""
        return f", {origin}, panel" if self.inputs.problem.finishes_rows else ""

    def _finish_rows(self, low: str, high: str, origin: str, indent: str) -> str:
        """The epilogue of whole rows, where there is one."""
        if not self.inputs.problem.finishes_rows:
            return ""
        call = f"{self.inputs.symbol}_rows(args, status, {low}, {high}, {origin}, panel, mine);"
        return f"{indent}{call}\n"

    def _finish_shared_rows(self) -> str:
        """All rows, once all columns are done, shared out among the threads."""
        if not self.inputs.problem.finishes_rows:
            return ""
        rows = self.inputs.problem.b * self.inputs.problem.m
        low, high = f"{rows}ll * t / team", f"{rows}ll * (t + 1) / team"
        return BARRIER + self._finish_rows(low, high, "0", "  ")

    def _by_rows(self) -> str:
        p, t = self.inputs.problem, self.inputs.tiling
        per_product = 1 if t.split is Split.BATCH else t.row_tiles(p)
        first_row = f"b * {p.m}ll + m0"
        tiles = "tiles" + self._panel_from(first_row)
        return (
            self._pack_right_together()
            + f"""\
  gaf_i64 unit = {p.b * per_product}ll * t / team;
  const gaf_i64 end = {p.b * per_product}ll * (t + 1) / team;
  while (unit < end) {{
    const gaf_i64 b = unit / {per_product}, first = unit % {per_product};
    const gaf_i64 count = end - unit < {per_product} - first ? end - unit : {per_product} - first;
    unit += count;
    const gaf_i64 low = {"0" if t.split is Split.BATCH else f"first * {t.mr}"};
    const gaf_i64 top = {p.m if t.split is Split.BATCH else f"(first + count) * {t.mr}"};
    const gaf_i64 high = top < {p.m} ? top : {p.m};
    const gaf_i64 tiles_of_rows = (high - low + {t.mr - 1}) / {t.mr};
    const gaf_i64 blocks = (tiles_of_rows + {t.mc - 1}) / {t.mc};
    const gaf_i64 step = (tiles_of_rows + blocks - 1) / blocks * {t.mr};
{self._right_of_product()}
    for (gaf_i64 m0 = low; m0 < high; m0 += step) {{
      const gaf_i64 m1 = m0 + step < high ? m0 + step : high;
{self._left_of_block()}
      for (gaf_i64 p0 = 0; p0 < {t.col_tiles(p)}; p0 += {t.nc}) {{
        const gaf_i64 p1 = p0 + {t.nc} < {t.col_tiles(p)} ? p0 + {t.nc} : {t.col_tiles(p)};
        {self.inputs.symbol}_block(args, status, b, m0, m1, p0, p1, 0, left, right, {tiles});
      }}
{self._finish_rows(first_row, f"b * {p.m}ll + m1", first_row, "      ")}    }}
  }}
"""
        )

    def _by_cols(self) -> str:
        p, t = self.inputs.problem, self.inputs.tiling
        step = t.mc * t.mr
        base = "p0" if t.right is Operand.CALL else "0"
        return (
            self._pack_left_together()
            + f"""\
  gaf_i64 unit = {p.b * t.col_tiles(p)}ll * t / team;
  const gaf_i64 end = {p.b * t.col_tiles(p)}ll * (t + 1) / team;
  while (unit < end) {{
    const gaf_i64 b = unit / {t.col_tiles(p)}, p0 = unit % {t.col_tiles(p)};
    gaf_i64 count = {t.col_tiles(p)} - p0 < {t.nc} ? {t.col_tiles(p)} - p0 : {t.nc};
    count = end - unit < count ? end - unit : count;
    const gaf_i64 p1 = p0 + count;
    unit += count;
{self._left_of_product()}
{self._right_of_block()}
    for (gaf_i64 m0 = 0; m0 < {p.m}; m0 += {step}) {{
      const gaf_i64 m1 = m0 + {step} < {p.m} ? m0 + {step} : {p.m};
      {self.inputs.symbol}_block(args, status, b, m0, m1, p0, p1, {base},
          {self._rows("left")}, right, tiles{self._panel_from("0")});
    }}
  }}
"""
        )

    def _pack_right_together(self) -> str:
        """All column tiles of all sections and products, shared out among the threads."""
        p, t = self.inputs.problem, self.inputs.tiling
        if t.right is not Operand.CALL or t.split is not Split.ROWS:
            return ""
        tiles = t.col_tiles(p)
        lines = [
            f"  for (gaf_i64 u = {p.b * tiles}ll * t / team, e = {p.b * tiles}ll * (t + 1) / team;"
            " u < e; ++u) {",
            f"    const gaf_i64 b = u / {tiles}, p = u % {tiles};",
        ]
        for section in range(p.sections):
            at = f"{self.inputs.section_at(section, 'b')} + p * {t.packed(p.k) * t.nr}ll"
            lines.append(
                f"    {self.inputs.symbol}_right{section}(args, status, b, p, p + 1,"
                f" shared_right + {at});"
            )
        return "\n".join([*lines, "  }", BARRIER])

    def _pack_left_together(self) -> str:
        """All row tiles of all products, shared out among the threads some tiles at a time."""
        p, t = self.inputs.problem, self.inputs.tiling
        if not t.left.is_prepared:
            return ""
        tiles = t.row_tiles(p)
        step = -(-2 * t.lanes // t.mr)  # room for whole vectors along the rows
        units = -(-tiles // step)
        elems = left_bytes(p, t, tiles) // p.product.dtype.bytes
        return f"""\
  for (gaf_i64 u = {p.b * units}ll * t / team, e = {p.b * units}ll * (t + 1) / team; u < e; ++u) {{
    const gaf_i64 m = u % {units} * {step * t.mr};
    const gaf_i64 top = m + {step * t.mr} < {p.m} ? m + {step * t.mr} : {p.m};
    {self.inputs.symbol}_left(args, status, u / {units}, m, top,
        shared_left + u / {units} * {elems}ll + m * {t.left_ld(p)}ll);
  }}
{BARRIER}"""

    def _right_of_product(self) -> str:
        """Declares `right`, the whole right operands of product b."""
        p, t = self.inputs.problem, self.inputs.tiling
        if self.inputs.right is not None:
            return self._declare_right([self.inputs.operand(d.buffer)
                                        for d in self.inputs.right])  # fmt: skip
        if self.inputs.packed is not None:
            return self._declare_right([self.inputs.packed_at(n) for n in range(p.sections)])
        if t.split is Split.BATCH:
            return self._pack_own("0", str(t.col_tiles(p)), t.col_tiles(p))
        return self._declare_right(
            [f"shared_right + {self.inputs.section_at(n, 'b')}" for n in range(p.sections)]
        )

    def _right_of_block(self) -> str:
        """Declares `right` for column tiles [p0, p1) of product b."""
        if self.inputs.tiling.right is Operand.CALL:
            return self._pack_own(
                "p0",
                "p1",
                min(self.inputs.tiling.nc, self.inputs.tiling.col_tiles(self.inputs.problem)),
            )
        return self._right_of_product()

    def _pack_own(self, first: str, end: str, room_tiles: int) -> str:
        """Packs column tiles [first, end) of all sections into the thread's own scratch."""
        p, t = self.inputs.problem, self.inputs.tiling
        size = right_bytes(p, t, room_tiles) // p.product.dtype.bytes
        places = [f"own_right + {section * size}ll" for section in range(p.sections)]
        calls = [
            f"    {self.inputs.symbol}_right{section}(args, status, b, {first}, {end}, {place});"
            for section, place in enumerate(places)
        ]
        return "\n".join([*calls, self._declare_right(places)])

    def _declare_right(self, pointers: list[str]) -> str:
        return f"    const {self.inputs.scalar} *const right[] = {{{', '.join(pointers)}}};"

    def _left_of_block(self) -> str:
        """Declares `left` for rows [m0, m1) of product b."""
        s = self.inputs.scalar
        if self.inputs.left is not None:
            return f"      const {s} *const left = {self.inputs.operand(self.inputs.left.buffer)};"
        return (
            f"      {self.inputs.symbol}_left(args, status, b, m0, m1, own_left);\n"
            f"      const {s} *const left = own_left;"
        )

    def _left_of_product(self) -> str:
        """Declares `left`, the whole left operand of product b."""
        p, t, s = self.inputs.problem, self.inputs.tiling, self.inputs.scalar
        if self.inputs.left is not None:
            return f"    const {s} *const left = {self.inputs.operand(self.inputs.left.buffer)};"
        elems = left_bytes(p, t, t.row_tiles(p)) // p.product.dtype.bytes
        return f"    const {s} *const left = shared_left + b * {elems}ll;"

    def _rows(self, name: str) -> str:
        """Rows from m0 on, of the whole operand."""
        if self.inputs.left is not None:
            return name
        return f"{name} + m0 * {self.inputs.tiling.left_ld(self.inputs.problem)}ll"

    def _body(self) -> str:
        """`symbol_body`, which the entry point calls in each thread of the team."""
        parts = scratch(self.inputs.problem, self.inputs.tiling)
        return f"""\
static int {self.inputs.symbol}_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {{
  char *const shared = (char *)args->scratch;
  char *const own = shared + {parts.shared} + tid * {parts.own}ll;
  int status = 0;
  {self.inputs.symbol}_share(args, status, shared, own, tid, nt);
  return status;
}}"""
