"""The loops around the register tile: blocks, and how threads share out the work.

rows / batch:  share (batch, row tiles) out;  pack MC rows of A;  for NC columns: block
cols:          pack all of A together;  share (batch, column tiles) out;
               for NC columns: pack B;  for MC rows: block

block:         for KC steps of k: for each column tile: for each row tile: register tile;
               with the last k, the epilogue of that tile
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.scratch import left_bytes, right_bytes, scratch
from kernel_gen.codegen.cpu.matmul.text import split_axes
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split, Tiling


@dataclass(frozen=True, slots=True)
class Direct:
    """An operand read in place: `buffer[offset + line·line_stride + k·step]`, in elements.

    A line is a row of A or a column of B (whose stride is 1). `offset` is a C expression over the
    batch variables and, for B, those of the column slab.
    """

    buffer: int
    offset: str
    line_stride: int
    step: int


@dataclass(frozen=True, slots=True)
class Driver:
    """Text of the block function, of the thread function and of the entry point."""

    symbol: str
    scalar: str
    problem: Problem
    tiling: Tiling
    left: Direct | None
    right: Direct | None
    packed: int | None  # position of the buffer that is packed at load

    def text(self) -> str:
        return "\n".join((self._block(), self._share(), self._entry()))

    def _block(self) -> str:
        """Rows [m0, m1) by column tiles [p0, p1) of one product. Packed operands begin there;
        operands read in place are whole."""
        p, t, s = self.problem, self.tiling, self.scalar
        tile = "tiles"
        if p.k > t.kc:
            tile += f" + ((p - p0) * row_tiles + (m - m0) / {t.mr}) * {t.mr * t.nr}"
        at = f"tile + row_shift * {t.nr} + col_shift"
        return f"""\
static void {self.symbol}_block(const gaf_kernel_args *args, int &status, gaf_i64 b,
    gaf_i64 m0, gaf_i64 m1, gaf_i64 p0, gaf_i64 p1, const {s} *left, const {s} *right,
    {s} *tiles) {{
  const gaf_i64 row_tiles = (m1 - m0 + {t.mr - 1}) / {t.mr}; (void)row_tiles;
{split_axes(p.batch, "b", "  ")}
  gaf_i64 kb = 0;
  do {{
    const gaf_i64 k = {p.k} - kb < {t.kc} ? {p.k} - kb : {t.kc};
    for (gaf_i64 p = p0; p < p1; ++p) {{
      const gaf_i64 slab = p / {t.slab_tiles(p)}, n0 = p % {t.slab_tiles(p)} * {t.nr};
      const gaf_i64 rest = {p.inner_cols} - n0, cols = rest < {t.nr} ? rest : {t.nr};
{split_axes(p.cols[:-1], "slab", "      ")}
{self._right_pointer()}
      for (gaf_i64 m = m0; m < m1; m += {t.mr}) {{
        const gaf_i64 rows = m1 - m < {t.mr} ? m1 - m : {t.mr};
{self._left_pointer()}
        {s} *tile = {tile};
{self._call_micro_kernel()}
        if (kb + k == {p.k})
          {self.symbol}_after(args, status, b, m, rows, slab, n0, cols, {at});
      }}
    }}
    kb += k;
  }} while (kb < {p.k});
}}"""

    def _left_pointer(self) -> str:
        """Where the tile's rows begin. Read in place, the last tile moves up so that it stays
        inside the operand; its first rows were done by the tile before."""
        t = self.tiling
        indent = "        "
        if self.left is None:
            return (
                f"{indent}const gaf_i64 row_shift = 0;\n"
                f"{indent}const {self.scalar} *rows_at = left"
                f" + (m - m0) * {t.left_ld(self.problem)} + kb;"
            )
        return (
            f"{indent}const gaf_i64 row_shift = {t.mr} - rows;\n"
            f"{indent}const {self.scalar} *rows_at = left + {self.left.offset}"
            f" + (m - row_shift) * {self.left.line_stride}ll + kb * {self.left.step}ll;"
        )

    def _right_pointer(self) -> str:
        p, t = self.problem, self.tiling
        indent = "      "
        tail = t.tail_nv(p) * t.lanes
        if self.right is None:
            ld = str(t.nr) if tail == t.nr else f"(cols > {tail} ? {t.nr} : {tail})"
            return (
                f"{indent}const gaf_i64 col_shift = 0;\n"
                f"{indent}const {self.scalar} *panel = right"
                f" + (p - p0) * {p.k * t.nr}ll + kb * {ld};"
            )
        return (
            f"{indent}const gaf_i64 col_shift = (cols == {t.nr} ? {t.nr} : {tail}) - cols;\n"
            f"{indent}const {self.scalar} *panel = right + {self.right.offset}"
            f" + n0 - col_shift + kb * {self.right.step}ll;"
        )

    def _call_micro_kernel(self) -> str:
        t, p = self.tiling, self.problem
        arguments = "(rows_at, panel, tile, k, kb == 0);"
        if t.tail_nv(p) == t.nv:
            return f"        {self.symbol}_tile{arguments}"
        return (
            f"        if (cols > {t.tail_nv(p) * t.lanes}) {self.symbol}_tile{arguments}\n"
            f"        else {self.symbol}_tail{arguments}"
        )

    def _share(self) -> str:
        """The part of thread `t` of `team`."""
        s, parts = self.scalar, scratch(self.problem, self.tiling)
        body = self._by_cols() if self.tiling.split is Split.COLS else self._by_rows()
        return f"""\
static void {self.symbol}_share(const gaf_kernel_args *args, int &status, char *shared,
    char *own, gaf_i64 t, gaf_i64 team) {{
  {s} *const shared_left = ({s} *)shared; (void)shared_left;
  {s} *const shared_right = ({s} *)(shared + {parts.shared_left}); (void)shared_right;
  {s} *const own_left = ({s} *)own; (void)own_left;
  {s} *const own_right = ({s} *)(own + {parts.own_left}); (void)own_right;
  {s} *const tiles = ({s} *)(own + {parts.own_left + parts.own_right});
{body}}}"""

    def _by_rows(self) -> str:
        p, t = self.problem, self.tiling
        per_product = 1 if t.split is Split.BATCH else t.row_tiles(p)
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
        {self.symbol}_block(args, status, b, m0, m1, p0, p1, left, {self._panels("right")}, tiles);
      }}
    }}
  }}
"""
        )

    def _by_cols(self) -> str:
        p, t = self.problem, self.tiling
        step = t.mc * t.mr
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
      {self.symbol}_block(args, status, b, m0, m1, p0, p1, {self._rows("left")}, right, tiles);
    }}
  }}
"""
        )

    def _pack_right_together(self) -> str:
        """All column tiles of all products, shared out among the threads."""
        p, t = self.problem, self.tiling
        if t.right is not Operand.CALL or t.split is not Split.ROWS:
            return ""
        elems = right_bytes(p, t, t.col_tiles(p)) // p.product.dtype.bytes
        return f"""\
  for (gaf_i64 u = {p.b * t.col_tiles(p)}ll * t / team,
       e = {p.b * t.col_tiles(p)}ll * (t + 1) / team; u < e; ++u)
    {self.symbol}_right(args, status, u / {t.col_tiles(p)}, u % {t.col_tiles(p)},
        u % {t.col_tiles(p)} + 1, shared_right + u / {t.col_tiles(p)} * {elems}ll
        + u % {t.col_tiles(p)} * {p.k * t.nr}ll);
#pragma omp barrier
"""

    def _pack_left_together(self) -> str:
        """All row tiles of all products, shared out among the threads."""
        p, t = self.problem, self.tiling
        if t.left is not Operand.CALL:
            return ""
        tiles = t.row_tiles(p)
        elems = left_bytes(p, t, tiles) // p.product.dtype.bytes
        return f"""\
  for (gaf_i64 u = {p.b * tiles}ll * t / team, e = {p.b * tiles}ll * (t + 1) / team; u < e; ++u) {{
    const gaf_i64 m = u % {tiles} * {t.mr}, top = m + {t.mr} < {p.m} ? m + {t.mr} : {p.m};
    {self.symbol}_left(args, status, u / {tiles}, m, top, shared_left + u / {tiles} * {elems}ll
        + m * {t.left_ld(p)}ll);
  }}
#pragma omp barrier
"""

    def _right_of_product(self) -> str:
        """Declares `right`, the whole right operand of product b."""
        p, t, s = self.problem, self.tiling, self.scalar
        elems = right_bytes(p, t, t.col_tiles(p)) // p.product.dtype.bytes
        source = f"const {s} *const right = "
        if self.right is not None:
            return f"    {source}(const {s} *)args->operands[{self.right.buffer}];"
        if t.right is Operand.LOAD:
            batch = f" + b * {elems}ll" if p.right_has_batch else ""
            return f"    {source}(const {s} *)args->operands[{self.packed}]{batch};"
        if t.split is Split.BATCH:
            return (
                f"    {self.symbol}_right(args, status, b, 0, {t.col_tiles(p)}, own_right);\n"
                f"    {source}own_right;"
            )
        return f"    {source}shared_right + b * {elems}ll;"

    def _right_of_block(self) -> str:
        """Declares `right` for column tiles [p0, p1) of product b."""
        if self.tiling.right is Operand.CALL:
            return (
                f"    {self.symbol}_right(args, status, b, p0, p1, own_right);\n"
                f"    const {self.scalar} *const right = own_right;"
            )
        whole = self._right_of_product()
        if self.right is not None:
            return whole
        return whole[:-1] + f" + p0 * {self.problem.k * self.tiling.nr}ll;"

    def _panels(self, name: str) -> str:
        """Column tiles from p0 on, of the whole operand."""
        if self.right is not None:
            return name
        return f"{name} + p0 * {self.problem.k * self.tiling.nr}ll"

    def _left_of_block(self) -> str:
        """Declares `left` for rows [m0, m1) of product b."""
        s = self.scalar
        if self.left is not None:
            return f"      const {s} *const left = (const {s} *)args->operands[{self.left.buffer}];"
        return (
            f"      {self.symbol}_left(args, status, b, m0, m1, own_left);\n"
            f"      const {s} *const left = own_left;"
        )

    def _left_of_product(self) -> str:
        """Declares `left`, the whole left operand of product b."""
        p, t, s = self.problem, self.tiling, self.scalar
        if self.left is not None:
            return f"    const {s} *const left = (const {s} *)args->operands[{self.left.buffer}];"
        elems = left_bytes(p, t, t.row_tiles(p)) // p.product.dtype.bytes
        return f"    const {s} *const left = shared_left + b * {elems}ll;"

    def _rows(self, name: str) -> str:
        """Rows from m0 on, of the whole operand."""
        if self.left is not None:
            return name
        return f"{name} + m0 * {self.tiling.left_ld(self.problem)}ll"

    def _entry(self) -> str:
        parts = scratch(self.problem, self.tiling)
        return f"""\
extern "C" int {self.symbol}(const gaf_kernel_args *args) {{
  char *const shared = (char *)args->scratch;
  char *const own = shared + {parts.shared};
  int status = 0;
{self._team(parts.own)}  {self.symbol}_share(args, status, shared, own, 0, 1);
  return status;
}}"""

    def _team(self, own_bytes: int) -> str:
        """The parallel region, where the caller offers threads and the schedule wants them."""
        if not self.tiling.team:
            return ""
        return f"""\
#ifdef _OPENMP
  if (args->n_threads > 1) {{
#pragma omp parallel num_threads(args->n_threads) reduction(| : status)
    {{
      const gaf_i64 t = omp_get_thread_num(), team = omp_get_num_threads();
      {self.symbol}_share(args, status, shared, own + t * {own_bytes}ll, t, team);
    }}
    return status;
  }}
#endif
"""

    def pack(self) -> str:
        """`symbol_pack(src, dst)`: the whole right operand, packed when a plan is created."""
        p, t = self.problem, self.tiling
        products = p.b if p.right_has_batch else 1
        elems = right_bytes(p, t, t.col_tiles(p)) // p.product.dtype.bytes
        return f"""\
extern "C" void {self.symbol}_pack(const void *src, void *dst) {{
  void *operands[{len(p.nest.buffers)}] = {{}};
  operands[{self.packed}] = (void *)src;
  gaf_kernel_args args = {{}};
  args.size = sizeof args;
  args.operands = operands;
  int status = 0;
  for (gaf_i64 b = 0; b < {products}; ++b)
    {self.symbol}_right(&args, status, b, 0, {t.col_tiles(p)},
        ({self.scalar} *)dst + b * {elems}ll);
}}"""
