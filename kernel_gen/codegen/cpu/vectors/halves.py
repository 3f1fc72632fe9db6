"""f16 to fp32 and back: the processor's conversions where it has them, else by integers."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.names import vector_type
from kernel_gen.codegen.cpu.vectors.widths import from_i32, to_i32
from kernel_gen.ir.dtype import DType

# What a compiler defines that has the conversion of so many lanes, and GCC's name for it.
_WIDEN = {
    4: ("__F16C__", "vcvtph2ps(p)"),
    8: ("__F16C__", "vcvtph2ps256(p)"),
    16: ("__AVX512F__", "vcvtph2ps512_mask(p, ({f32}){{}}, -1, 4)"),
}
# The 0 asks for rounding to nearest even.
_NARROW = {
    4: ("__F16C__", "vcvtps2ph(x, 0)"),
    8: ("__F16C__", "vcvtps2ph256(x, 0)"),
    16: ("__AVX512F__", "vcvtps2ph512_mask(x, 0, ({i16}){{}}, -1)"),
}
# 2^112 moves the exponent's bias from 15 to 127 and normalises subnormals exactly.
_WIDEN_BITS = """\
  const {i32} h = {bits}, m = (h & 0x7fff) << 13;
  const {f32} f = ({f32})m * 0x1p112f;
  const {i32} s = m >= 0x0f800000;
  return ({f32})((s & (m | 0x7f800000)) | (~s & ({i32})f) | ((h & 0x8000) << 16));
"""
# Subnormal halves: adding 0.5 puts the half's last bit at the float's last bit, rounded to even.
# Normal halves: the integer addition rounds at bit 13 and carries into the exponent, to infinity.
_NARROW_BITS = """\
  const {i32} b = ({i32})x, a = b & 0x7fffffff;
  const {i32} sub = ({i32})(({f32})a + 0.5f) - 0x3f000000;
  const {i32} big = (a - 0x38000000 + 0xfff + ((a >> 13) & 1)) >> 13;
  const {i32} inf = ({i32})(a >= 0x477ff000), nan = ({i32})(a > 0x7f800000);
  const {i32} low = ({i32})(a < 0x38800000);
  {i32} r = (low & sub) | (~low & big);
  r = (inf & 0x7c00) | (~inf & r);
  r = (nan & 0x7e00) | (~nan & r);
  return {bits};
"""


def widen_f16(unit: Unit, lanes: int) -> str:
    """Lines that return the fp32 lanes of the f16 lanes `x`."""
    types = _types(unit, lanes)
    plain = _WIDEN_BITS.format(bits=to_i32(unit, DType.F16, lanes, "x"), **types)
    if lanes not in _WIDEN:
        return plain
    macro, call = _WIDEN[lanes]
    places = ", ".join(str(lane % lanes) for lane in range(8))
    given = f"__builtin_shufflevector(x, x, {places})" if lanes < 8 else "x"
    held = vector_type(unit, DType.I16, max(lanes, 8))
    text = f"  const {held} p = ({held}){given};\n"
    text += f"  return __builtin_ia32_{call.format(**types)};\n"
    return f"#if defined({macro}) && !defined(__clang__)\n{text}#else\n{plain}#endif\n"


def narrow_f16(unit: Unit, lanes: int) -> str:
    """Lines that return the f16 lanes of the fp32 lanes `x`, rounded to nearest even."""
    types = _types(unit, lanes)
    bits = from_i32(unit, DType.F16, lanes, "r | ((b >> 16) & 0x8000)")
    plain = _NARROW_BITS.format(bits=bits, **types)
    if lanes not in _NARROW:
        return plain
    macro, call = _NARROW[lanes]
    raw = vector_type(unit, DType.F16, lanes)
    found = f"__builtin_ia32_{call.format(**types)}"
    if lanes < 8:
        vector_type(unit, DType.I16, 8)
        text = f"  const gaf_i16x8 p = {found};\n"
        text += f"  return ({raw})__builtin_shufflevector(p, p, 0, 1, 2, 3);\n"
    else:
        text = f"  return ({raw}){found};\n"
    return f"#if defined({macro}) && !defined(__clang__)\n{text}#else\n{plain}#endif\n"


def _types(unit: Unit, lanes: int) -> dict[str, str]:
    kinds = {"i32": DType.I32, "f32": DType.F32, "i16": DType.I16}
    return {name: vector_type(unit, kind, lanes) for name, kind in kinds.items()}
