"""`symbol_pack<buffer>`: constants are packed once, when a plan is created."""

from __future__ import annotations

from kernel_gen.codegen.cpu.matmul.inputs import Inputs
from kernel_gen.codegen.cpu.matmul.scratch import ALIGN
from kernel_gen.codegen.source import Pack


def pack_function(inputs: Inputs, buffer: int) -> str:
    """`symbol_pack<buffer>(src, dst)`: the sections of one constant, packed once."""
    p, t = inputs.problem, inputs.tiling
    assert inputs.packed is not None
    products = p.b if p.right_has_batch else 1
    sections = [n for n, packed in enumerate(inputs.packed) if packed == buffer]
    calls = "\n".join(
        f"    {inputs.symbol}_right{section}(&args, status, b, 0, {t.col_tiles(p)},"
        f" ({inputs.scalar} *)dst + {inputs.section_at(place, 'b')});"
        for place, section in enumerate(sections)
    )
    return f"""\
extern "C" void {inputs.symbol}_pack{buffer}(const void *src, void *dst) {{
  void *operands[{len(p.nest.buffers)}] = {{}};
  operands[{buffer}] = (void *)src;
  gaf_kernel_args args = {{}};
  args.size = sizeof args;
  args.operands = operands;
  int status = 0;
  for (gaf_i64 b = 0; b < {products}; ++b) {{
{calls}
  }}
{_mark(inputs, buffer) if buffer in inputs.marked else ""}}}"""


def _mark(inputs: Inputs, buffer: int) -> str:
    """Writes behind the packed elements whether all of the constant's are finite."""
    s = inputs.scalar
    elems = inputs.problem.nest.buffers[buffer].type.elems
    return f"""\
  int finite = 1;
  for (gaf_i64 i = 0; i < {elems}; ++i) {{
    const {s} x = ((const {s} *)src)[i];
    finite &= x - x == 0;
  }}
  (({s} *)dst)[{inputs.packed_elems(buffer)}] = finite;
"""


def pack_of(inputs: Inputs, buffer: int) -> Pack:
    """What the caller must know of `pack`."""
    p = inputs.problem
    nbytes = inputs.packed_elems(buffer) * p.product.dtype.bytes
    nbytes += ALIGN if buffer in inputs.marked else 0
    return Pack(buffer, nbytes, f"{inputs.symbol}_pack{buffer}")
