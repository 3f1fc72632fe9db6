"""`symbol_pack<buffer>`: constants are packed once, when a plan is created."""

from __future__ import annotations

from kernel_gen.codegen.cpu.matmul.inputs import Inputs
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
}}"""


def pack_of(inputs: Inputs, buffer: int) -> Pack:
    """What the caller must know of `pack`."""
    p = inputs.problem
    assert inputs.packed is not None
    count = inputs.packed.count(buffer) * max(p.b, 1)
    nbytes = count * inputs.section_elems * p.product.dtype.bytes
    return Pack(buffer, nbytes, f"{inputs.symbol}_pack{buffer}")
