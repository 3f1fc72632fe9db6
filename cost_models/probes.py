"""Small generated C++ probes of this machine: copies of given bytes, the FMA rate, and how fast
vectors go through exponentials and their kin.

They are built with the project's own compiler and flags. Benchmarks run them beside the contenders;
`cost_models.calibrate` takes a machine's rates from them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import platformdirs

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.math import vector_function
from kernel_gen.codegen.cpu.vectors.types import vector_type
from kernel_gen.errors import Unavailable
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.kernel import aligned_bytes

BLOCK_BYTES = 4096
FMA_STEPS = 40_000
ACCUMULATORS = 12  # enough to hide the latency of two units, few enough for sixteen registers
FUNCTION_ELEMS = 2048  # in and out of the first-level cache
FUNCTION_STEPS = 200
_BF16_LANES_PER_LANE = 2  # a dot instruction multiplies pairs

# Each thread takes a share of the blocks. Per block it reads its part of the read bytes into four
# sums and writes its part of the written bytes with what it has read, so that neither can be
# dropped and the mix is that of the workload throughout.
_COPY = """
typedef float vec __attribute__((vector_size({bytes}), aligned({bytes}), may_alias));
static inline void put_plain(vec *p, vec v) {{ *p = v; }}
static inline void put_stream(vec *p, vec v) {{ {stream} }}
#define COPY(NAME, PUT) \\
extern "C" void NAME(const char *in, char *out, long long reads, long long writes, \\
                     long long blocks, int threads) {{ \\
  _Pragma("omp parallel for schedule(static) num_threads(threads)") \\
  for (long long b = 0; b < blocks; ++b) {{ \\
    const vec *r = (const vec *)in + reads * b / blocks; \\
    const long long nr = reads * (b + 1) / blocks - reads * b / blocks; \\
    vec *w = (vec *)out + writes * b / blocks; \\
    const long long nw = writes * (b + 1) / blocks - writes * b / blocks; \\
    vec s0 = {{}}, s1 = {{}}, s2 = {{}}, s3 = {{}}; \\
    long long i = 0; \\
    for (; i + 4 <= nr; i += 4) {{ s0 += r[i]; s1 += r[i + 1]; s2 += r[i + 2]; s3 += r[i + 3]; }} \\
    for (; i < nr; ++i) s0 += r[i]; \\
    s0 += s1 + s2 + s3; \\
    asm volatile("" : : "{register}"(s0)); \\
    for (long long j = 0; j < nw; ++j) PUT(w + j, s0); \\
  }} \\
}}
COPY(gaf_copy_plain, put_plain)
COPY(gaf_copy_stream, put_stream)
"""
_FMA = """
extern "C" void gaf_fma(long long steps, int threads) {{
  _Pragma("omp parallel num_threads(threads)")
  {{
    vec a[{count}], x = {{}}, y = {{}};
    for (int k = 0; k < {count}; ++k) a[k] = x + (float)k;
    asm volatile("" : "+{register}"(x), "+{register}"(y));
    for (long long i = 0; i < steps; ++i) {{
      {lines}
    }}
    for (int k = 0; k < {count}; ++k) asm volatile("" : : "{register}"(a[k]));
  }}
}}
"""
_BF16 = """
#include <immintrin.h>
extern "C" void gaf_bf16(long long steps, int threads) {{
  _Pragma("omp parallel num_threads(threads)")
  {{
    __m512 a[{count}];
    for (int k = 0; k < {count}; ++k) a[k] = _mm512_set1_ps((float)k);
    __m512bh x = {{}}, y = {{}};
    asm volatile("" : "+v"(x), "+v"(y));
    for (long long i = 0; i < steps; ++i) {{
      {lines}
    }}
    for (int k = 0; k < {count}; ++k) asm volatile("" : : "v"(a[k]));
  }}
}}
"""
_FUNCTION = """
extern "C" void gaf_function(long long steps, int threads) {{
  _Pragma("omp parallel num_threads(threads)")
  {{
    {vector} in[{count}], out[{count}];
    for (int k = 0; k < {count}; ++k)
      for (int l = 0; l < {lanes}; ++l) in[k][l] = (k * {lanes} + l) * (16.0f / {elems}) - 8.0f;
    for (long long i = 0; i < steps; ++i) {{
      for (int k = 0; k < {count}; ++k) out[k] = {name}(in[k]);
      asm volatile("" : : "r"(out), "r"(in) : "memory");
    }}
  }}
}}
"""
_STREAMS = {"x86": "__builtin_nontemporal_store(v, p);", "other": "*p = v;"}
_GCC_STREAMS = {
    16: "__builtin_ia32_movntps((float *)p, v);",
    32: "__builtin_ia32_movntps256((float *)p, v);",
    64: "__builtin_ia32_movntps512((float *)p, v);",
}


def probe_source(target: Target, *, clang: bool = False) -> str:
    """The probes' C++ text for a target."""
    x86 = target.isa.startswith("x86")
    streams = _STREAMS["x86"] if clang else _GCC_STREAMS[target.vector_bytes]
    register = ("v" if target.vector_bytes == 64 else "x") if x86 else "w"
    lines = "\n      ".join(f"a[{k}] = a[{k}] * x + y;" for k in range(ACCUMULATORS))
    text = _COPY.format(
        bytes=target.vector_bytes,
        stream=streams if x86 else _STREAMS["other"],
        register=register,
    ) + _FMA.format(count=ACCUMULATORS, register=register, lines=lines)
    if has_bf16_dot(target):
        dots = (f"a[{k}] = _mm512_dpbf16_ps(a[{k}], x, y);" for k in range(ACCUMULATORS))
        text = _BF16.format(count=ACCUMULATORS, lines="\n      ".join(dots)) + text
    return text


def function_source(target: Target, op: str) -> str:
    """The text of a probe that applies fp32 `op` ("exp", "erf", …) to vectors as kernels do."""
    unit, lanes = Unit(), target.vector_bytes // DType.F32.bytes
    vector = vector_type(unit, DType.F32, lanes)
    name = vector_function(unit, op, DType.F32, lanes)
    count = FUNCTION_ELEMS // lanes
    return unit.text() + _FUNCTION.format(
        vector=vector, name=name, lanes=lanes, count=count, elems=FUNCTION_ELEMS
    )


def has_bf16_dot(target: Target) -> bool:
    """Whether the target multiplies pairs of bf16 in one instruction."""
    return "avx512bf16" in target.features and target.vector_bytes == 64


class Probes:
    """The built probes. Raises Unavailable without a compiler that takes them."""

    def __init__(self, threads: int, folder: Path | None = None) -> None:
        self._target, self._threads = host_target(), threads
        place = folder or platformdirs.user_cache_path("graph-autofusion") / "probes"
        self._compiler = Compiler.find(place)
        clang = "clang" in self._compiler.version
        self._library = self._built(probe_source(self._target, clang=clang))

    def _built(self, text: str) -> ctypes.CDLL:
        built = self._compiler.compile_texts([("probes.cpp", text)], self._target)
        if isinstance(built, Failure):
            raise Unavailable(f"the probes do not compile: {built.message}")
        return ctypes.CDLL(str(self._compiler.path_of(built)))

    def copies(self, read_bytes: int, written_bytes: int) -> dict[str, Callable[[], None]]:
        """A plain and a streaming copy of a workload's footprint and mix."""
        width = self._target.vector_bytes
        reads, writes = (-(-n // width) for n in (read_bytes, written_bytes))
        source, result = aligned_bytes(reads * width), aligned_bytes(writes * width)
        source.fill(1)
        result.fill(0)
        blocks = max(1, max(reads, writes) * width // BLOCK_BYTES)

        def copy(name: str) -> Callable[[], None]:
            return lambda: getattr(self._library, name)(
                ctypes.c_void_p(source.ctypes.data),
                ctypes.c_void_p(result.ctypes.data),
                *(ctypes.c_longlong(n) for n in (reads, writes, blocks)),
                self._threads,
            )

        return {"copy": copy("gaf_copy_plain"), "stream": copy("gaf_copy_stream")}

    def fma(self, dtype: str) -> tuple[Callable[[], None], float]:
        """A run of multiply-adds on all threads, and how many operations it makes."""
        dots = dtype == "bfloat16" and has_bf16_dot(self._target)
        function = self._library.gaf_bf16 if dots else self._library.gaf_fma
        lanes = self._target.vector_bytes // np.dtype(np.float32).itemsize
        lanes *= _BF16_LANES_PER_LANE if dots else 1
        steps, threads = ctypes.c_longlong(FMA_STEPS), self._threads
        operations = 2.0 * lanes * ACCUMULATORS * FMA_STEPS * threads
        return lambda: function(steps, threads), operations

    def function(self, op: str) -> tuple[Callable[[], None], float]:
        """A run of fp32 `op` on all threads, and to how many elements it is applied."""
        function = self._built(function_source(self._target, op)).gaf_function
        steps, threads = ctypes.c_longlong(FUNCTION_STEPS), self._threads
        return lambda: function(steps, threads), float(FUNCTION_ELEMS * FUNCTION_STEPS * threads)
