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
from kernel_gen.codegen.source import Pack


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
    right: tuple[Direct, ...] | None  # by section
    packed: tuple[int, ...] | None  # buffers that are packed at load, by section

    def text(self) -> str:
        return "\n".join((self._block(), self._share(), self._entry()))

    def _block(self) -> str:
        """Rows [m0, m1) by column tiles [p0, p1) of one product. A packed left operand begins at
        m0, a packed right one at column tile pr; operands read in place are whole."""
        p, t, s = self.problem, self.tiling, self.scalar
        size = p.sections * t.mr * t.nr
        tile = "tiles"
        if p.k > t.kc:
            tile += f" + ((p - p0) * row_tiles + (m - m0) / {t.mr}) * {size}"
        at = f"tile + row_shift * {t.nr} + col_shift"
        return f"""\
static void {self.symbol}_block(const gaf_kernel_args *args, int &status, gaf_i64 b,
    gaf_i64 m0, gaf_i64 m1, gaf_i64 p0, gaf_i64 p1, gaf_i64 pr, const {s} *left,
    const {s} *const *right, {s} *tiles) {{
  const gaf_i64 row_tiles = (m1 - m0 + {t.mr - 1}) / {t.mr}; (void)row_tiles; (void)pr;
{split_axes(p.batch, "b", "  ")}
  gaf_i64 kb = 0;
  do {{
    const gaf_i64 k = {p.k} - kb < {t.kc} ? {p.k} - kb : {t.kc};
    for (gaf_i64 p = p0; p < p1; ++p) {{
      const gaf_i64 slab = p / {t.slab_tiles(p)}, n0 = p % {t.slab_tiles(p)} * {t.nr};
      const gaf_i64 rest = {p.inner_cols} - n0, cols = rest < {t.nr} ? rest : {t.nr};
{split_axes(p.cols[:-1], "slab", "      ")}
{self._right_pointers()}
      for (gaf_i64 m = m0; m < m1; m += {t.mr}) {{
        const gaf_i64 rows = m1 - m < {t.mr} ? m1 - m : {t.mr};
{self._left_pointer()}
        {s} *tile = {tile};
{self._call_micro_kernels()}
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

    def _right_pointers(self) -> str:
        """The column tile of each section. Read in place, the last tile moves left."""
        p, t = self.problem, self.tiling
        indent = "      "
        tail = t.tail_nv(p) * t.lanes
        if self.right is None:
            ld = str(t.nr) if tail == t.nr else f"(cols > {tail} ? {t.nr} : {tail})"
            at = [f"(p - pr) * {p.k * t.nr}ll + kb * {ld}"] * p.sections
            shift = "0"
        elif t.right is Operand.DOT:
            at = [f"{d.offset} + n0 * {d.line_stride}ll + kb" for d in self.right]
            shift = "0"
        else:
            at = [f"{d.offset} + n0 - col_shift + kb * {d.step}ll" for d in self.right]
            shift = f"(cols == {t.nr} ? {t.nr} : {tail}) - cols"
        return "\n".join(
            [
                f"{indent}const gaf_i64 col_shift = {shift};",
                *(
                    f"{indent}const {self.scalar} *const panel{section} ="
                    f" right[{section}] + {text};"
                    for section, text in enumerate(at)
                ),
            ]
        )

    def _call_micro_kernels(self) -> str:
        t, p = self.tiling, self.problem
        lines = []
        for section in range(p.sections):
            tile = f"tile + {section * t.mr * t.nr}"
            dot = t.right is Operand.DOT
            call = f"(rows_at, panel{section}, {tile}, k, kb == 0{', cols' if dot else ''});"
            if dot or t.tail_nv(p) == t.nv:
                lines.append(f"        {self.symbol}_tile{call}")
                continue
            wide = f"cols > {t.tail_nv(p) * t.lanes}"
            lines.append(f"        if ({wide}) {self.symbol}_tile{call}")
            lines.append(f"        else {self.symbol}_tail{call}")
        return "\n".join(lines)

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
        {self.symbol}_block(args, status, b, m0, m1, p0, p1, 0, left, right, tiles);
      }}
    }}
  }}
"""
        )

    def _by_cols(self) -> str:
        p, t = self.problem, self.tiling
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
      {self.symbol}_block(args, status, b, m0, m1, p0, p1, {base}, {self._rows("left")}, right,
          tiles);
    }}
  }}
"""
        )

    def _pack_right_together(self) -> str:
        """All column tiles of all sections and products, shared out among the threads."""
        p, t = self.problem, self.tiling
        if t.right is not Operand.CALL or t.split is not Split.ROWS:
            return ""
        tiles = t.col_tiles(p)
        lines = [
            f"  for (gaf_i64 u = {p.b * tiles}ll * t / team, e = {p.b * tiles}ll * (t + 1) / team;"
            " u < e; ++u) {",
            f"    const gaf_i64 b = u / {tiles}, p = u % {tiles};",
        ]
        for section in range(p.sections):
            at = f"{self._section_at(section, 'b')} + p * {p.k * t.nr}ll"
            lines.append(
                f"    {self.symbol}_right{section}(args, status, b, p, p + 1, shared_right + {at});"
            )
        return "\n".join([*lines, "  }", "#pragma omp barrier", ""])

    def _section_elems(self) -> int:
        """Elements of one section of one product, packed."""
        p, t = self.problem, self.tiling
        return right_bytes(p, t, t.col_tiles(p)) // p.product.dtype.bytes

    def _section_at(self, place: int, product: str) -> str:
        """Where the section at `place` of a product begins among packed sections."""
        size = self._section_elems()
        return f"({place * max(self.problem.b, 1)}ll + {product}) * {size}ll"

    def _pack_left_together(self) -> str:
        """All row tiles of all products, shared out among the threads some tiles at a time."""
        p, t = self.problem, self.tiling
        if t.left is not Operand.CALL:
            return ""
        tiles = t.row_tiles(p)
        step = -(-2 * t.lanes // t.mr)  # room for whole vectors along the rows
        units = -(-tiles // step)
        elems = left_bytes(p, t, tiles) // p.product.dtype.bytes
        return f"""\
  for (gaf_i64 u = {p.b * units}ll * t / team, e = {p.b * units}ll * (t + 1) / team; u < e; ++u) {{
    const gaf_i64 m = u % {units} * {step * t.mr};
    const gaf_i64 top = m + {step * t.mr} < {p.m} ? m + {step * t.mr} : {p.m};
    {self.symbol}_left(args, status, u / {units}, m, top, shared_left + u / {units} * {elems}ll
        + m * {t.left_ld(p)}ll);
  }}
#pragma omp barrier
"""

    def _right_of_product(self) -> str:
        """Declares `right`, the whole right operands of product b."""
        p, t, s = self.problem, self.tiling, self.scalar
        if self.right is not None:
            return self._declare_right([f"(const {s} *)args->operands[{d.buffer}]"
                                        for d in self.right])  # fmt: skip
        if self.packed is not None:
            return self._declare_right([self._packed_at(n) for n in range(p.sections)])
        if t.split is Split.BATCH:
            return self._pack_own("0", str(t.col_tiles(p)), t.col_tiles(p))
        return self._declare_right(
            [f"shared_right + {self._section_at(n, 'b')}" for n in range(p.sections)]
        )

    def _right_of_block(self) -> str:
        """Declares `right` for column tiles [p0, p1) of product b."""
        if self.tiling.right is Operand.CALL:
            return self._pack_own(
                "p0", "p1", min(self.tiling.nc, self.tiling.col_tiles(self.problem))
            )
        return self._right_of_product()

    def _pack_own(self, first: str, end: str, room_tiles: int) -> str:
        """Packs column tiles [first, end) of all sections into the thread's own scratch."""
        p, t = self.problem, self.tiling
        size = right_bytes(p, t, room_tiles) // p.product.dtype.bytes
        places = [f"own_right + {section * size}ll" for section in range(p.sections)]
        calls = [
            f"    {self.symbol}_right{section}(args, status, b, {first}, {end}, {place});"
            for section, place in enumerate(places)
        ]
        return "\n".join([*calls, self._declare_right(places)])

    def _declare_right(self, pointers: list[str]) -> str:
        return f"    const {self.scalar} *const right[] = {{{', '.join(pointers)}}};"

    def _packed_at(self, section: int) -> str:
        """Where a section that was packed at load begins for product b."""
        assert self.packed is not None
        buffer = self.packed[section]
        place = self.packed[:section].count(buffer)
        product = "b" if self.problem.right_has_batch else "0"
        base = f"(const {self.scalar} *)args->operands[{buffer}]"
        return f"{base} + {self._section_at(place, product)}"

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

    def pack(self, buffer: int) -> str:
        """`symbol_pack<buffer>(src, dst)`: the sections of one constant, packed once."""
        p, t = self.problem, self.tiling
        assert self.packed is not None
        products = p.b if p.right_has_batch else 1
        sections = [n for n, packed in enumerate(self.packed) if packed == buffer]
        calls = "\n".join(
            f"    {self.symbol}_right{section}(&args, status, b, 0, {t.col_tiles(p)},"
            f" ({self.scalar} *)dst + {self._section_at(place, 'b')});"
            for place, section in enumerate(sections)
        )
        return f"""\
extern "C" void {self.symbol}_pack{buffer}(const void *src, void *dst) {{
  void *operands[{len(p.nest.buffers)}] = {{}};
  operands[{buffer}] = (void *)src;
  gaf_kernel_args args = {{}};
  args.size = sizeof args;
  args.operands = operands;
  int status = 0;
  for (gaf_i64 b = 0; b < {products}; ++b) {{
{calls}
  }}
}}"""

    def pack_of(self, buffer: int) -> Pack:
        """What the caller must know of `pack`."""
        p = self.problem
        assert self.packed is not None
        count = self.packed.count(buffer) * max(p.b, 1)
        nbytes = count * self._section_elems() * p.product.dtype.bytes
        return Pack(buffer, nbytes, f"{self.symbol}_pack{buffer}")
