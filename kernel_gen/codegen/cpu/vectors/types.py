"""C types of kernels: scalars, vectors of any power-of-two lane count.

A vector is a GCC/Clang extension type named `gaf_<dtype>x<lanes>`; vectors wider than the machine's
registers are split by the compiler. Narrow floats compute in fp32 (`DType.compute`). A bool vector
is a *mask*: a vector of 0/-1 of the integer type as wide as `mask_bytes`; a bool scalar is 0/1.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.names import SCALAR_C as SCALAR_C
from kernel_gen.codegen.cpu.vectors.names import vector_type as vector_type
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.target import Target

INTEGER = {1: DType.I8, 2: DType.I16, 4: DType.I32, 8: DType.I64}
"""The integer type of so many bytes."""


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
