"""The loops over heads, blocks of rows and blocks of keys, and how threads share them out.

unit = (head, block of rows[, part of the keys]); a thread takes neighbouring units, so that the
keys and values it packed for a head serve all its units of that head. Parts of the keys are merged
after a barrier, like blocks of keys are: with the largest score of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.attention.frame import Frame
from kernel_gen.codegen.cpu.attention.operands import InPlace
from kernel_gen.codegen.cpu.attention.scratch import Scratch, scratch
from kernel_gen.codegen.cpu.attention.tiling import Operand
from kernel_gen.codegen.cpu.statements.value import literal_text
from kernel_gen.codegen.cpu.vectors.math import scalar_function


@dataclass(frozen=True, slots=True)
class Driver:
    """Text of the loops over keys, of one thread's share, and of the entry point's body."""

    frame: Frame
    key: InPlace | None
    value: InPlace | None

    @property
    def _parts(self) -> Scratch:
        return scratch(self.frame.problem, self.frame.tiling)

    def text(self) -> str:
        merged = self.frame.tiling.splits > 1
        parts = (self._keys(), self._share(), self._merge() if merged else "", self._body())
        return "\n".join(part for part in parts if part)

    def _keys(self) -> str:
        """`symbol_keys`: one block of rows over the keys [from, to)."""
        f, t, s = self.frame, self.frame.tiling, self.frame.scalar
        ldq, lds, depth = t.padded(t.depth(f.problem)), t.padded(t.keys), t.depth(f.problem)
        lowest = literal_text(float("-inf"), f.problem.dtype)
        return f"""\
static void {f.symbol}_keys(const gaf_kernel_args *args, int &status, gaf_i64 b, gaf_i64 m0,
    gaf_i64 rows, gaf_i64 from, gaf_i64 to, const {s} *query, const {self._type(self.key)} *key,
    const {self._type(self.value)} *value, {s} *scores, {s} *sums, {s} *tops, {s} *totals) {{
  if (from >= to) {{
    for (gaf_i64 r = 0; r < rows; ++r) tops[r] = {lowest}, totals[r] = 0;
    for (gaf_i64 c = 0; c < rows * {t.padded(f.problem.e)}; ++c) sums[c] = 0;
  }}
  for (gaf_i64 t0 = from; t0 < to; t0 += {t.keys}) {{
    const gaf_i64 cols = to - t0 < {t.keys} ? to - t0 : {t.keys};
    const int first = t0 == from;
    for (gaf_i64 p = 0; p < cols; p += {t.nr}) {{
{self._panel()}
      for (gaf_i64 r = 0; r < rows; r += {t.mr})
        {f.symbol}_qk(query + r * {ldq}, panel, scores + r * {lds} + p, {depth}, 1{self._count()});
    }}
    {f.symbol}_softmax(args, status, b, m0, rows, t0, cols, scores, sums, tops, totals, first);
{self._weigh()}
  }}
}}"""

    def _type(self, place: InPlace | None) -> str:
        """C type of the elements of keys or values."""
        return self.frame.element(place.stored if place else None)

    def _panel(self) -> str:
        f, t = self.frame, self.frame.tiling
        if t.key is not Operand.DOT:
            return f"      const {f.scalar} *const panel = key + (t0 + p) * {t.depth(f.problem)}ll;"
        assert self.key is not None
        at = f"key + (t0 + p) * {self.key.row_stride}ll"
        return (
            f"      const {self._type(self.key)} *const panel = {at};\n"
            f"      const gaf_i64 count = cols - p < {t.nr} ? cols - p : {t.nr};"
        )

    def _count(self) -> str:
        return ", count" if self.frame.tiling.key is Operand.DOT else ""

    def _weigh(self) -> str:
        """Sums of values, tile by tile of their columns."""
        f, t, p = self.frame, self.frame.tiling, self.frame.problem
        lds, ldo = t.padded(t.keys), t.padded(p.e)
        steps = "(cols + 1) / 2" if t.value is Operand.PAIRS else "cols"

        def call(name: str, nv: int, column: str) -> str:
            if self.value is None:
                begin = "t0 / 2" if t.value is Operand.PAIRS else "t0"
                at = f"{column} * {t.along_keys(p.t)}ll + {begin} * {nv * t.lanes}"
            else:
                at = f"{column} + t0 * {self.value.row_stride}ll"
            return (
                f"      for (gaf_i64 r = 0; r < rows; r += {t.mr})\n"
                f"        {f.symbol}_{name}(scores + r * {lds}, value + {at},"
                f" sums + r * {ldo} + {column}, {steps}, first);"
            )

        full = p.e // t.nr * t.nr
        lines = []
        if full:
            lines += [
                f"    for (gaf_i64 e = 0; e < {full}; e += {t.nr})",
                call("pv", t.nv, "e"),
            ]
        if full < p.e:
            name = "pv" if t.tail_nv(p) == t.nv else "pvtail"
            lines.append(call(name, t.tail_nv(p), str(full)))
        return "\n".join(lines)

    def _share(self) -> str:
        """`symbol_share`: the units of thread `tid` of `nt`."""
        f, t, s = self.frame, self.frame.tiling, self.frame.scalar
        units, blocks = self._units(), t.blocks(f.problem)
        inner = blocks * t.splits
        return f"""\
static void {f.symbol}_share(const gaf_kernel_args *args, int &status, {s} *shared, {s} *own,
    gaf_i64 tid, gaf_i64 nt) {{
{self._places()}
  const {self._type(self.key)} *key = {"nullptr" if self.key else "own_key"};
  const {self._type(self.value)} *value = {"nullptr" if self.value else "own_value"};
  gaf_i64 head = -1, first_odd = 0, last_odd = 0;
  (void)first_odd; (void)last_odd; (void)shared;
  for (gaf_i64 unit = {units}ll * tid / nt; unit < {units}ll * (tid + 1) / nt; ++unit) {{
    const gaf_i64 b = unit / {inner}, block = unit % {inner} / {t.splits};
    const gaf_i64 m0 = block * {t.rows};
    const gaf_i64 rows = {f.problem.m} - m0 < {t.rows} ? {f.problem.m} - m0 : {t.rows};
    if (b != head) {{
{self._begin_head()}
      head = b;
    }}
    {f.symbol}_query(args, status, b, m0, rows, query);
{self._sight()}
{self._run()}
  }}
}}"""

    def _units(self) -> int:
        p, t = self.frame.problem, self.frame.tiling
        return p.b * t.blocks(p) * t.splits

    def _places(self) -> str:
        s, parts, at = self.frame.scalar, self._parts, 0
        lines = []
        for name, size in (
            ("query", parts.query),
            ("scores", parts.scores),
            ("tops", parts.tops),
            ("totals", parts.totals),
            ("sums", parts.sums),
            ("own_key", parts.key),
            ("own_value", parts.value),
        ):
            lines.append(f"  {s} *const {name} = own + {at}; (void){name};")
            at += size
        return "\n".join(lines)

    def _begin_head(self) -> str:
        """What is done once per head: packing, or finding the place."""
        f = self.frame
        lines = []
        for name, place in (("key", self.key), ("value", self.value)):
            if place is None:
                lines.append(f"      {f.symbol}_{name}(args, status, b, own_{name});")
            else:
                lines.append(f"      {name} = {f.symbol}_{name}_at(args, status, b);")
        if f.problem.limits:
            lines.append(f"      {f.symbol}_finite(args, status, b, first_odd, last_odd);")
        return "\n".join(lines)

    def _sight(self) -> str:
        """Declares the keys [begin, end) of a block of rows; a panel of keys begins there."""
        f, t = self.frame, self.frame.tiling
        if not f.problem.limits:
            return f"    const gaf_i64 begin = 0, end = {f.problem.t};"
        return (
            "    gaf_i64 low = first_odd, end = last_odd;\n"
            f"    {f.symbol}_sight(args, status, b, m0, rows, low, end);\n"
            f"    const gaf_i64 begin = low / {t.nr} * {t.nr};"
        )

    def _run(self) -> str:
        f, t = self.frame, self.frame.tiling
        head = f"    {f.symbol}_keys(args, status, b, m0, rows, "
        tail = "query, key, value, scores, "
        if t.splits == 1:
            return (
                f"{head}begin, end, {tail}sums, tops, totals);\n"
                f"    {f.symbol}_after(args, status, b, m0, rows, sums, totals);"
            )
        parts = self._parts
        return (
            f"    const gaf_i64 part = unit % {t.splits};\n"
            f"    const gaf_i64 tiles = (end - begin + {t.nr - 1}) / {t.nr};\n"
            f"    const gaf_i64 from = begin + tiles * part / {t.splits} * {t.nr};\n"
            f"    const gaf_i64 to = begin + tiles * (part + 1) / {t.splits} * {t.nr};\n"
            f"    {f.scalar} *const place = shared + unit * {parts.unit}ll;\n"
            f"{head}from, to < end ? to : end, {tail}place, place + {parts.sums},"
            f" place + {parts.sums + parts.tops});"
        )

    def _merge(self) -> str:
        """`symbol_merge`: parts of the keys into the first part, block by block, then `after`."""
        f, t, s, parts = self.frame, self.frame.tiling, self.frame.scalar, self._parts
        p = f.problem
        lowest, exp = literal_text(float("-inf"), p.dtype), scalar_function(f.unit, "exp", p.dtype)
        blocks, ldo = t.blocks(p), t.padded(p.e)
        return f"""\
static void {f.symbol}_merge(const gaf_kernel_args *args, int &status, {s} *shared, gaf_i64 tid,
    gaf_i64 nt) {{
  for (gaf_i64 u = {p.b * blocks}ll * tid / nt; u < {p.b * blocks}ll * (tid + 1) / nt; ++u) {{
    const gaf_i64 b = u / {blocks}, m0 = u % {blocks} * {t.rows};
    const gaf_i64 rows = {p.m} - m0 < {t.rows} ? {p.m} - m0 : {t.rows};
    {s} *const sums = shared + u * {t.splits * parts.unit}ll, *const tops = sums + {parts.sums};
    {s} *const totals = tops + {parts.tops};
    for (gaf_i64 r = 0; r < rows; ++r) {{
      {s} top = {lowest};
      for (int i = 0; i < {t.splits}; ++i) {{
        const {s} other = tops[i * {parts.unit}ll + r];
        top = other > top ? other : top;
      }}
      const {s} base = top == {lowest} ? 0 : top;
      for (int i = 0; i < {t.splits}; ++i) {{
        const {s} shrink = {exp}(tops[i * {parts.unit}ll + r] - base);
        const {s} *const from = sums + i * {parts.unit}ll + r * {ldo};
        totals[r] = shrink * totals[i * {parts.unit}ll + r] + (i ? totals[r] : 0);
        for (gaf_i64 c = 0; c < {p.e}; ++c)
          sums[r * {ldo} + c] = shrink * from[c] + (i ? sums[r * {ldo} + c] : 0);
      }}
    }}
    {f.symbol}_after(args, status, b, m0, rows, sums, totals);
  }}
}}"""

    def _body(self) -> str:
        """`symbol_body`, which the entry point calls in each thread of the team."""
        f, s = self.frame, self.frame.scalar
        nbytes = self._parts.own * f.problem.dtype.bytes
        merge = ""
        if f.tiling.splits > 1:
            merge = f"  GAF_BARRIER\n  {f.symbol}_merge(args, status, shared, tid, nt);\n"
        shared = self._units() * self._parts.unit
        return f"""\
static int {f.symbol}_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {{
  int status = 0;
  {s} *const shared = ({s} *)args->scratch;
  {s} *const own = ({s} *)((char *)(shared + {shared}ll) + tid * {nbytes}ll);
  {f.symbol}_share(args, status, shared, own, tid, nt);
{merge}  return status;
}}"""
