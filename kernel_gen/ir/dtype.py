"""Element types. Arithmetic on a narrow float happens in fp32 (`DType.compute`)."""

from __future__ import annotations

from enum import StrEnum


class DType(StrEnum):
    """Element type of a tensor; the value is the name used in JSON and digests."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def bytes(self) -> int:
        """Storage size of one element."""
        return _BYTES[self]

    @property
    def is_float(self) -> bool:
        return self in (DType.F64, DType.F32, DType.F16, DType.BF16)

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return not self.is_float and self is not DType.BOOL

    @property
    def compute(self) -> DType:
        """The type in which a kernel computes on this storage type."""
        return DType.F32 if self in (DType.F16, DType.BF16) else self


_BYTES = {
    DType.F64: 8,
    DType.F32: 4,
    DType.F16: 2,
    DType.BF16: 2,
    DType.I64: 8,
    DType.I32: 4,
    DType.I16: 2,
    DType.I8: 1,
    DType.U8: 1,
    DType.BOOL: 1,
}
