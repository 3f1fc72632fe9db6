"""Vector loads and stores of elements as they are stored: whole vectors, the first lanes of one,
past the cache. Values are converted on the way (`stored`)."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.masked import masked_load, masked_store
from kernel_gen.codegen.cpu.vectors.names import SCALAR_C, vector_type
from kernel_gen.codegen.cpu.vectors.stored import narrowed, widened
from kernel_gen.codegen.cpu.vectors.types import Lanes, tag, value_type
from kernel_gen.ir.dtype import DType

# Bytes of a register: what a compiler defines that has it, and its mark on non-temporal stores.
_STREAMS = {16: ("__SSE__", ""), 32: ("__AVX__", "256"), 64: ("__AVX512F__", "512")}


def load_function(unit: Unit, dtype: DType, lanes: Lanes, partial: bool) -> str:
    """`value f(const stored *p[, int n])`: loads all lanes, or the first n and zeros."""
    raw, value = vector_type(unit, dtype, lanes.count), value_type(unit, dtype, lanes)
    suffix = tag(dtype, lanes)
    stored = SCALAR_C[dtype]
    if not partial:
        return unit.helper(
            f"gaf_ld_{suffix}",
            f"static inline {value} gaf_ld_{suffix}(const {stored} *p) "
            f"{{ return {widened(unit, dtype, lanes, f'*(const {raw}u *)p')}; }}",
        )
    return unit.helper(
        f"gaf_ldn_{suffix}",
        f"static inline {value} gaf_ldn_{suffix}(const {stored} *p, int n) {{\n"
        + masked_load(unit, dtype, lanes.count, "0", "n")
        + f"  return {widened(unit, dtype, lanes, 'r')};\n}}",
    )


def store_function(
    unit: Unit, dtype: DType, lanes: Lanes, *, partial: bool = False, stream: bool = False
) -> str:
    """`void f(stored *p, value x[, int n])`: stores all lanes, or the first n."""
    raw, value = vector_type(unit, dtype, lanes.count), value_type(unit, dtype, lanes)
    suffix = tag(dtype, lanes)
    stored = SCALAR_C[dtype]
    if partial:
        return unit.helper(
            f"gaf_stn_{suffix}",
            f"static inline void gaf_stn_{suffix}({stored} *p, {value} x, int n) {{\n"
            f"  const {raw} r = {narrowed(unit, dtype, lanes, 'x')};\n"
            f"{masked_store(unit, dtype, lanes.count)}}}",
        )
    if stream:
        return _stream_function(unit, dtype, lanes, suffix, value)
    return unit.helper(
        f"gaf_st_{suffix}",
        f"static inline void gaf_st_{suffix}({stored} *p, {value} x) "
        f"{{ *({raw}u *)p = {narrowed(unit, dtype, lanes, 'x')}; }}",
    )


def _stream_function(unit: Unit, dtype: DType, lanes: Lanes, suffix: str, value: str) -> str:
    """Non-temporal store; falls back to a plain one where `p` is not aligned to the vector."""
    raw = vector_type(unit, dtype, lanes.count)
    size = dtype.bytes * lanes.count
    plain = store_function(unit, dtype, lanes)
    chunk = min(size, lanes.register_bytes)
    has, width = _STREAMS[chunk]
    piece = vector_type(unit, DType.F32, chunk // 4)
    return unit.helper(
        f"gaf_nt_{suffix}",
        f"static inline void gaf_nt_{suffix}({SCALAR_C[dtype]} *p, {value} x) {{\n"
        f"  if ((gaf_u64)p % {chunk}) {{ {plain}(p, x); return; }}\n"
        f"  union {{ {raw} r; {piece} c[{size // chunk}]; }} u;\n"
        f"  u.r = {narrowed(unit, dtype, lanes, 'x')};\n"
        "#if defined(__clang__)\n"
        f"  for (int k = 0; k < {size // chunk}; k++) "
        f"__builtin_nontemporal_store(u.c[k], ({piece} *)p + k);\n"
        f"#elif defined({has})\n"
        f"  for (int k = 0; k < {size // chunk}; k++)\n"
        f"    __builtin_ia32_movntps{width}((float *)p + k * {chunk // 4}, u.c[k]);\n"
        "#else\n"
        f"  {plain}(p, x);\n"
        "#endif\n}",
    )


def can_stream(dtype: DType, lanes: int) -> bool:
    """Whether a vector of this storage type fills whole streaming stores."""
    return dtype.bytes * lanes >= 16
