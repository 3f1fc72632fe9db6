"""C types of kernels: scalars, vectors of any power-of-two lane count, loads, stores, conversions.

A vector is a GCC/Clang extension type named `gaf_<dtype>x<lanes>`; vectors wider than the machine's
registers are split by the compiler. Narrow floats compute in fp32 (`DType.compute`). A bool vector
is a *mask*: a vector of 0/-1 of the integer type as wide as `mask_bytes`; a bool scalar is 0/1.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.bytes import bytes_to_i32, i32_to_bytes
from kernel_gen.codegen.cpu.vectors.names import SCALAR_C as SCALAR_C
from kernel_gen.codegen.cpu.vectors.names import vector_type as vector_type
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.target import Target

INTEGER = {1: DType.I8, 2: DType.I16, 4: DType.I32, 8: DType.I64}
"""The integer type of so many bytes."""
# Bytes of a register: what a compiler defines that has it, and its mark on non-temporal stores.
_STREAMS = {16: ("__SSE__", ""), 32: ("__AVX__", "256"), 64: ("__AVX512F__", "512")}


def compute_c(dtype: DType) -> str:
    """C type of a scalar value of this dtype while it is computed with."""
    return SCALAR_C[dtype.compute]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The vector shape of a kernel: `count` lanes, masks of `mask_bytes` per lane.

    `register_bytes` is the machine's register, the largest single store.
    """

    count: int
    mask_bytes: int = 4
    register_bytes: int = 16

    @property
    def mask(self) -> DType:
        """The integer dtype of a mask's lanes."""
        return INTEGER[self.mask_bytes]


def value_type(unit: Unit, dtype: DType, lanes: Lanes) -> str:
    """Name of the vector type in which values of `dtype` are computed; bool gives the mask type."""
    stored = lanes.mask if dtype is DType.BOOL else dtype.compute
    return vector_type(unit, stored, lanes.count)


def tag(dtype: DType, lanes: Lanes) -> str:
    """What names of functions end on: storage type and lanes, and the mask that bools become."""
    return f"{dtype}x{lanes.count}" + (f"m{lanes.mask_bytes}" if dtype is DType.BOOL else "")


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
        + _either(
            _live_lanes_move(unit, dtype, lanes.count, store=False),
            f"  {raw} r;\n"
            f"  for (int l = 0; l < {lanes.count}; l++) r[l] = l < n ? p[l] : ({stored})0;\n",
        )
        + f"  return {widened(unit, dtype, lanes, 'r')};\n}}",
    )


def _live_lanes_move(unit: Unit, dtype: DType, lanes: int, *, store: bool) -> str | None:
    """Lines of AVX's masked load into `r` (or store of `r`), for the first n lanes of one register;
    None where it has none. Compilers go lane by lane instead."""
    move = masked_move(unit, dtype, lanes)
    if move is None:
        return None
    suffix, held = move
    same = INTEGER[dtype.bytes]
    mask, raw = vector_type(unit, same, lanes), vector_type(unit, dtype, lanes)
    places = ", ".join(map(str, range(lanes)))
    live = f"const {mask} live = ({mask}){{{places}}} < ({SCALAR_C[same]})n;"
    if store:
        return f"  {live}\n  __builtin_ia32_maskstore{suffix}(({held} *)p, live, ({held})r);\n"
    call = f"__builtin_ia32_maskload{suffix}((const {held} *)p, live)"
    return f"  {live}\n  const {raw} r = ({raw}){call};\n"


def masked_move(unit: Unit, dtype: DType, lanes: int) -> tuple[str, str] | None:
    """What the names of AVX's masked moves of one register end on, and the vector type that they
    take; None where it has none."""
    size = dtype.bytes * lanes
    if dtype.bytes not in (4, 8) or size not in (16, 32):
        return None
    suffix = ("ps" if dtype.bytes == 4 else "pd") + ("256" if size == 32 else "")
    return suffix, vector_type(unit, DType.F32 if dtype.bytes == 4 else DType.F64, lanes)


def _either(avx: str | None, plain: str) -> str:
    """`avx` where the target has AVX (and such a text exists), else `plain`."""
    return plain if avx is None else f"#ifdef __AVX__\n{avx}#else\n{plain}#endif\n"


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
            + _either(
                _live_lanes_move(unit, dtype, lanes.count, store=True),
                f"  for (int l = 0; l < {lanes.count}; l++) if (l < n) p[l] = r[l];\n",
            )
            + "}",
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


def widened(unit: Unit, dtype: DType, lanes: Lanes, text: str) -> str:
    """Expression of stored lanes `text` in the type they are computed in."""
    if dtype not in (DType.BF16, DType.F16, DType.BOOL):
        return text
    n = lanes.count
    raw, value = vector_type(unit, dtype, n), value_type(unit, dtype, lanes)
    name = f"gaf_widen_{tag(dtype, lanes)}"
    i32 = vector_type(unit, DType.I32, n)
    f32 = vector_type(unit, DType.F32, n)
    if dtype is DType.BF16:
        body = f"return ({f32})(__builtin_convertvector(x, {i32}) << 16);"
    elif dtype is DType.F16:
        body = (
            f"const {i32} h = __builtin_convertvector(x, {i32}), m = (h & 0x7fff) << 13;\n"
            # 2^112 moves the exponent's bias from 15 to 127 and normalises subnormals exactly
            f"  const {f32} f = ({f32})m * 0x1p112f;\n"
            f"  const {i32} s = m >= 0x0f800000;\n"
            f"  return ({f32})((s & (m | 0x7f800000)) | (~s & ({i32})f) | ((h & 0x8000) << 16));"
        )
    elif lanes.mask_bytes == 4:
        body = f"return {bytes_to_i32(unit, dtype, n, 'x')} != 0;"
    else:
        body = f"return __builtin_convertvector(x, {value}) != 0;"
    unit.helper(name, f"static inline {value} {name}({raw} x) {{\n  {body}\n}}")
    return f"{name}({text})"


def narrowed(unit: Unit, dtype: DType, lanes: Lanes, text: str) -> str:
    """Expression of computed lanes `text` in the stored type, floats rounded to nearest even."""
    if dtype not in (DType.BF16, DType.F16, DType.BOOL):
        return text
    n = lanes.count
    raw, value = vector_type(unit, dtype, n), value_type(unit, dtype, lanes)
    name = f"gaf_narrow_{tag(dtype, lanes)}"
    i32 = vector_type(unit, DType.I32, n)
    if dtype is DType.BF16:
        body = (
            f"const {i32} b = ({i32})x, r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;\n"
            f"  const {i32} nan = x != x;\n"
            f"  return __builtin_convertvector((nan & 0x7fc0) | (~nan & r), {raw});"
        )
    elif dtype is DType.F16:
        body = _F16_NARROW.format(i32=i32, f32=value, raw=raw)
    elif lanes.mask_bytes == 4:
        body = f"return {i32_to_bytes(unit, dtype, n, '-x')};"
    else:
        body = f"return __builtin_convertvector(-x, {raw});"
    unit.helper(name, f"static inline {raw} {name}({value} x) {{\n  {body}\n}}")
    return f"{name}({text})"


# Subnormal halves: adding 0.5 puts the half's last bit at the float's last bit, rounded to even.
# Normal halves: the integer addition rounds at bit 13 and carries into the exponent, to infinity.
_F16_NARROW = """\
const {i32} b = ({i32})x, a = b & 0x7fffffff;
  const {i32} sub = ({i32})(({f32})a + 0.5f) - 0x3f000000;
  const {i32} big = (a - 0x38000000 + 0xfff + ((a >> 13) & 1)) >> 13;
  const {i32} inf = ({i32})(a >= 0x477ff000), nan = ({i32})(a > 0x7f800000);
  const {i32} low = ({i32})(a < 0x38800000);
  {i32} r = (low & sub) | (~low & big);
  r = (inf & 0x7c00) | (~inf & r);
  r = (nan & 0x7e00) | (~nan & r);
  return __builtin_convertvector(r | ((b >> 16) & 0x8000), {raw});"""


def scalar_load(unit: Unit, dtype: DType, text: str) -> str:
    """Expression of the computed value of one stored element `text` (an lvalue)."""
    if dtype is DType.BOOL:
        return f"({text} != 0)"
    if dtype is DType.BF16:
        name = unit.helper(
            "gaf_bf16_f32",
            "static inline float gaf_bf16_f32(unsigned short h) "
            "{ return __builtin_bit_cast(float, (unsigned)h << 16); }",
        )
        return f"{name}({text})"
    if dtype is DType.F16:
        return f"{_scalar_by_vector(unit, dtype, widen=True)}({text})"
    return text


def scalar_store(unit: Unit, dtype: DType, text: str) -> str:
    """Expression of the stored element for the computed scalar `text`."""
    if dtype in (DType.BF16, DType.F16):
        return f"{_scalar_by_vector(unit, dtype, widen=False)}({text})"
    return f"({SCALAR_C[dtype]})({text})"


def _scalar_by_vector(unit: Unit, dtype: DType, *, widen: bool) -> str:
    """One element through the four-lane conversion, so that scalars and vectors agree."""
    four = Lanes(4)
    if widen:
        name, raw = f"gaf_{dtype}_to_f32", vector_type(unit, dtype, 4)
        inner = widened(unit, dtype, four, f"{raw}{{x, x, x, x}}")
        text = f"float {name}(unsigned short x) {{ return {inner}[0]; }}"
    else:
        name, raw = f"gaf_f32_to_{dtype}", vector_type(unit, DType.F32, 4)
        inner = narrowed(unit, dtype, four, f"{raw}{{x, x, x, x}}")
        text = f"unsigned short {name}(float x) {{ return {inner}[0]; }}"
    return unit.helper(name, "static inline " + text)


def pick_lanes(dtypes: list[DType], target: Target, extent: int | None) -> Lanes:
    """Lanes for a kernel computing in `dtypes`, vectorised along an axis of `extent` (None: long).

    One register holds one vector of the kernel's main type: the widest float, or without floats the
    widest integer (an i64 index beside an fp32 value shall not halve the lanes).
    """
    floats = [d.compute.bytes for d in dtypes if d.is_float]
    others = [d.bytes for d in dtypes if not d.is_float]
    width = max(floats) if floats else max(others, default=4)
    count = min(target.vector_bytes // width, 64)
    while extent is not None and count > 4 and count // 2 >= extent:
        count //= 2
    return Lanes(count, width, target.vector_bytes)
