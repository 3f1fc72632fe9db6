"""Moves of some lanes of a register, the memory of the others untouched: AVX-512's masked moves,
AVX's for elements of 4 and 8 bytes, elsewhere (and where compilers name them differently) lane by
lane."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.names import SCALAR_C, vector_type
from kernel_gen.ir.dtype import DType

_SAME = {1: DType.I8, 2: DType.I16, 4: DType.I32, 8: DType.I64}
# Of AVX-512's names by bytes of an element: the middle, and the element's C type.
_AVX512 = {1: ("dquqi", "char"), 2: ("dquhi", "short"), 4: ("ups", "float"), 8: ("upd", "double")}
HAS_MASKS = "defined(__AVX512VL__) && defined(__AVX512BW__) && !defined(__clang__)"
"""Where `is_masked` moves take a mask."""


def is_masked(dtype: DType, lanes: int) -> bool:
    """Whether a vector's memory is one register of AVX-512's masked moves."""
    return lanes * dtype.bytes in (16, 32, 64)


def masked_load(unit: Unit, dtype: DType, lanes: int, first: str, end: str) -> str:
    """Lines that define `r`: the elements at `p` in the lanes [first, end), zeros in the others.
    0 <= first, end <= lanes."""
    raw, c = vector_type(unit, dtype, lanes), SCALAR_C[dtype]
    inside = f"l < {end}" if first == "0" else f"l >= {first} && l < {end}"
    plain = f"  {raw} r;\n  for (int l = 0; l < {lanes}; l++) r[l] = {inside} ? p[l] : ({c})0;\n"
    forms = []
    if is_masked(dtype, lanes):
        middle, element = _AVX512[dtype.bytes]
        held = _register(unit, dtype, lanes)
        mask = _bits(unit, lanes, first, end)
        call = f"__builtin_ia32_load{middle}{8 * dtype.bytes * lanes}_mask"
        text = f"  const {raw} r = ({raw}){call}((const {element} *)p, ({held}){{}}, {mask});\n"
        forms.append((HAS_MASKS, text))
    if _moved_by_avx(dtype, lanes):
        suffix, held = _avx(unit, dtype, lanes)
        call = f"__builtin_ia32_maskload{suffix}((const {held} *)p, moved)"
        text = _moved(unit, dtype, lanes, first, end) + f"  const {raw} r = ({raw}){call};\n"
        forms.append(("defined(__AVX__)", text))
    return _first_that_is_there(forms, plain)


def masked_store(unit: Unit, dtype: DType, lanes: int) -> str:
    """Lines that store the first `n` lanes of `r` at `p`; 0 <= n <= lanes."""
    plain = f"  for (int l = 0; l < {lanes}; l++) if (l < n) p[l] = r[l];\n"
    forms = []
    if is_masked(dtype, lanes):
        middle, element = _AVX512[dtype.bytes]
        held = _register(unit, dtype, lanes)
        call = f"__builtin_ia32_store{middle}{8 * dtype.bytes * lanes}_mask"
        mask = _bits(unit, lanes, "0", "n")
        forms.append((HAS_MASKS, f"  {call}(({element} *)p, ({held})r, {mask});\n"))
    if _moved_by_avx(dtype, lanes):
        suffix, held = _avx(unit, dtype, lanes)
        text = f"  __builtin_ia32_maskstore{suffix}(({held} *)p, moved, ({held})r);\n"
        forms.append(("defined(__AVX__)", _moved(unit, dtype, lanes, "0", "n") + text))
    return _first_that_is_there(forms, plain)


def _first_that_is_there(forms: list[tuple[str, str]], plain: str) -> str:
    """The first text whose condition holds, else `plain`."""
    lines = [f"#{'elif' if n else 'if'} {has}\n{text}" for n, (has, text) in enumerate(forms)]
    return "".join([*lines, f"#else\n{plain}#endif\n"]) if lines else plain


def _register(unit: Unit, dtype: DType, lanes: int) -> str:
    """The vector type that AVX-512's masked moves take."""
    if dtype.bytes == 1:
        name = f"gaf_charx{lanes}"
        return unit.helper(name, f"typedef char {name} __attribute__((vector_size({lanes})));")
    kinds = {2: DType.I16, 4: DType.F32, 8: DType.F64}
    return vector_type(unit, kinds[dtype.bytes], lanes)


def _bits(unit: Unit, lanes: int, first: str, end: str) -> str:
    """Expression of a mask register's bits [first, end)."""
    name = unit.helper(
        "gaf_low_bits",
        "static inline gaf_u64 gaf_low_bits(int n) { return n < 64 ? (1ull << n) - 1 : ~0ull; }",
    )
    bits = f"{name}((int){end})" if first == "0" else f"{name}((int){end}) & ~{name}((int){first})"
    kind = {64: "gaf_u64", 32: "unsigned", 16: "unsigned short"}.get(lanes, "unsigned char")
    return f"({kind})({bits})"


def _moved_by_avx(dtype: DType, lanes: int) -> bool:
    return dtype.bytes in (4, 8) and dtype.bytes * lanes in (16, 32)


def _avx(unit: Unit, dtype: DType, lanes: int) -> tuple[str, str]:
    """What the names of AVX's masked moves end on, and the vector type that they take."""
    suffix = ("ps" if dtype.bytes == 4 else "pd") + ("256" if dtype.bytes * lanes == 32 else "")
    return suffix, vector_type(unit, DType.F32 if dtype.bytes == 4 else DType.F64, lanes)


def _moved(unit: Unit, dtype: DType, lanes: int, first: str, end: str) -> str:
    """Declares `moved`, -1 in the lanes [first, end)."""
    same = _SAME[dtype.bytes]
    mask, c = vector_type(unit, same, lanes), SCALAR_C[same]
    places = ", ".join(map(str, range(lanes)))
    low = "" if first == "0" else f" & (lane >= ({c}){first})"
    return f"  const {mask} lane = {{{places}}}, moved = (lane < ({c}){end}){low};\n"
