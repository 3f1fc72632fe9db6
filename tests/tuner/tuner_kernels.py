"""Hand-written kernels for `scale_nest`: a right one, and one for each way to go wrong."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.source import KernelSource

RIGHT = "for (gaf_i64 i = 0; i < n; i++) out[i] = 2.0f * x[i];"
SLOW_START = (
    "static volatile gaf_i64 calls = 0; const gaf_i64 steps = calls++ < 1 ? 20000000 : 0;"
    "for (volatile gaf_i64 i = 0; i < steps;) i = i + 1;" + RIGHT
)
WRONG = "for (gaf_i64 i = 0; i < n; i++) out[i] = 2.0f * x[i] + (i == 17);"
INCOMPLETE = "for (gaf_i64 i = 0; i + 1 < n; i++) out[i] = 2.0f * x[i];"
OVERRUN = "for (gaf_i64 i = 0; i < n + 1; i++) out[i] = 2.0f * x[i < n ? i : 0];"
WRITES_INPUT = "for (gaf_i64 i = 0; i < n; i++) ((float *)x)[i] = out[i] = 2.0f * x[i];"
CRASH = "*(volatile int *)8 = 1;"
ABORT = "__builtin_trap();"
HANG = "volatile gaf_i64 forever = 1; while (forever) {}"
STATUS = "return 7;"
BROKEN = "this is no C++;"


def kernel(body: str, entry: str = "candidate", elems: int = 1000) -> KernelSource:
    """A kernel over x and out with `n` elements; `body` is C++."""
    unit = Unit()
    unit.function(f"""
extern "C" int {entry}(const gaf_kernel_args *args) {{
  const float *x = (const float *)args->operands[0];
  float *out = (float *)args->operands[1];
  const gaf_i64 n = {elems};
  (void)x; (void)out; (void)n;
  {body}
  return 0;
}}""")
    return KernelSource(entry, ((f"{entry}.cpp", unit.text()),))
