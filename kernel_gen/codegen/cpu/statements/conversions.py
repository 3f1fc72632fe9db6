"""Values of a kernel converted: a scalar to all lanes, a comparison to a mask, a dtype to another.

Narrow floats are held in fp32, bools of vectors as masks of the kernel's width, 0 or -1.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.statements.value import Value, literal_text
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.stored import narrowed, scalar_load, scalar_store, widened
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, Lanes, compute_c, value_type, vector_type
from kernel_gen.codegen.cpu.vectors.widths import from_i32, to_i32
from kernel_gen.ir.dtype import DType

_BYTES = (DType.I8, DType.U8)
_SHORT = (*_BYTES, DType.I16)


@dataclass(frozen=True, slots=True)
class Conversions:
    """Writes expressions into `unit` for vectors of `lanes`."""

    unit: Unit
    lanes: Lanes

    def c_type(self, dtype: DType, vector: bool) -> str:
        """C type in which a value is held."""
        return value_type(self.unit, dtype, self.lanes) if vector else compute_c(dtype)

    def literal(self, value: float | int | bool, dtype: DType) -> Value:
        """A scalar constant of `dtype`."""
        return Value(literal_text(value, dtype), dtype, vector=False, const=value)

    def broadcast(self, value: Value) -> Value:
        """The scalar in all lanes."""
        if value.vector:
            return value
        kind = self.c_type(value.dtype, vector=True)
        held = self.lanes.mask if value.dtype is DType.BOOL else value.dtype.compute
        name = self.unit.helper(
            f"gaf_bc_{kind}",
            # s - 0 keeps the sign of zero, which 0 + s would not
            f"static inline {kind} gaf_bc_{kind}({SCALAR_C[held]} s) "
            f"{{ return s - ({kind}){{}}; }}",
        )
        scalar = f"-(int)({value.text})" if value.dtype is DType.BOOL else value.text
        return Value(f"{name}({scalar})", value.dtype, vector=True, const=value.const)

    def mask(self, comparison: str, operand: Value, vector: bool) -> str:
        """A comparison as a bool value: masks of the kernel's width, or 0/1."""
        if not vector:
            return f"({comparison})"
        if operand.dtype in _BYTES and self.lanes.mask_bytes == 4:
            signed = vector_type(self.unit, DType.I8, self.lanes.count)
            return to_i32(self.unit, DType.I8, self.lanes.count, f"({signed})({comparison})")
        kind = self.c_type(DType.BOOL, vector=True)
        return f"__builtin_convertvector({comparison}, {kind})"

    def mask_for(self, mask: str, dtype: DType) -> str:
        """A mask converted to the lane width of `dtype`, as a selection needs it."""
        size = dtype.compute.bytes
        if size == self.lanes.mask_bytes:
            return mask
        if size == 1 and self.lanes.mask_bytes == 4:
            return from_i32(self.unit, DType.I8, self.lanes.count, mask)
        same = {1: DType.I8, 2: DType.I16, 4: DType.I32, 8: DType.I64}[size]
        kind = vector_type(self.unit, same, self.lanes.count)
        return f"__builtin_convertvector({mask}, {kind})"

    def select(self, condition: Value, a: Value, b: Value) -> str:
        """`condition ? a : b` by lane."""
        if not condition.vector:
            return f"({condition.text} ? {a.text} : {b.text})"
        if a.dtype is DType.BOOL:
            m = condition.text
            return f"(({m} & {a.text}) | (~{m} & {b.text}))"
        return f"({self.mask_for(condition.text, a.dtype)} ? {a.text} : {b.text})"

    def cast(self, arg: Value, dtype: DType) -> str:
        """The value converted: floats to integers truncate, to bool `!= 0`, narrow floats round."""
        if arg.dtype is dtype:
            return arg.text
        if dtype is DType.BOOL:
            zero = "0" if arg.vector or not arg.dtype.is_float else "0.0f"
            return self.mask(f"{arg.text} != {zero}", arg, arg.vector)
        text = self._vector_cast(arg, dtype) if arg.vector else f"({compute_c(dtype)})({arg.text})"
        if dtype in (DType.BF16, DType.F16):
            return self.rounded(text, dtype, arg.vector)
        return text

    def _vector_cast(self, arg: Value, dtype: DType) -> str:
        kind, count = self.c_type(dtype, vector=True), self.lanes.count
        if arg.dtype.compute is dtype.compute:
            return arg.text
        text, held = arg.text, arg.dtype
        if held is DType.BOOL:
            text, held = f"(-{text})", self.lanes.mask
        wide = vector_type(self.unit, DType.I32, count)
        if held in _SHORT and dtype not in _SHORT:
            text, held = to_i32(self.unit, held, count, text), DType.I32
        if dtype in _SHORT and held not in _SHORT:
            text = text if held is DType.I32 else f"__builtin_convertvector({text}, {wide})"
            return from_i32(self.unit, dtype, count, text)
        return text if held is dtype else f"__builtin_convertvector({text}, {kind})"

    def rounded(self, text: str, dtype: DType, vector: bool) -> str:
        """An fp32 value rounded to a narrow float and back."""
        if not vector:
            return scalar_load(self.unit, dtype, scalar_store(self.unit, dtype, text))
        return widened(self.unit, dtype, self.lanes, narrowed(self.unit, dtype, self.lanes, text))
