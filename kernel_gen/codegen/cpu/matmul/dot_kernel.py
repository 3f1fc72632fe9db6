"""The register tile for few rows and a right operand whose memory runs along k.

Packing such an operand would read it once and write it once for a handful of uses. Instead vectors
run along k for both operands, one sum per row and column, and the lanes are added at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.matmul.fused import read_widened
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.stored import scalar_load
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C
from kernel_gen.ir.dtype import DType

_SUMS = 12  # in registers: enough for two multiply-adds a cycle of latency four or five
_COLUMNS = (
    8,
    4,
    2,
)  # read side by side: streams that the hardware follows; divide a tile's columns


@dataclass(frozen=True, slots=True)
class DotKernel:
    """C[MR×cols] (+)= A[MR×k] · B[cols×k]ᵀ. Strides in elements; k has stride 1 in both."""

    symbol: str
    scalar: str
    vector: str
    lanes: int
    mr: int
    tile_ld: int
    lda: int
    ldb: int
    stored: DType | None = None  # of B, widened as it is read; None: as summed

    @property
    def group(self) -> int:
        """Columns whose sums are kept in registers together."""
        return columns_together(self.mr)

    def text(self, unit: Unit) -> str:
        """The C++ function `void symbol(A, B, C, k, first, cols)`."""
        add = lane_sum(unit, self.scalar, self.vector, self.lanes)
        s, group = self.scalar, self.group
        kind = SCALAR_C[self.stored] if self.stored else s
        return "\n".join(
            (
                f"static __attribute__((noinline)) void {self.symbol}(const {s} *__restrict A, "
                f"const void *__restrict columns, {s} *__restrict C, gaf_i64 k, int first, "
                "gaf_i64 cols) {",
                f"  const {kind} *const B = (const {kind} *)columns;",
                "  gaf_i64 j = 0;",
                *self._columns(group, f"for (; j + {group} <= cols; j += {group})", add, unit),
                *self._columns(1, "for (; j < cols; ++j)", add, unit),
                "}",
            )
        )  # fmt: skip

    def _columns(self, group: int, head: str, add: str, unit: Unit) -> list[str]:
        read = f"*(const {self.vector}u *)"
        if self.stored:
            read = read_widened(unit, self.stored, self.lanes)
        tile = [(i, g) for i in range(self.mr) for g in range(group)]
        lines = [f"  {head} {{", "    gaf_i64 q = 0;"]
        lines += [f"    {self.vector} s{i}_{g} = {{}};" for i, g in tile]
        lines.append(f"    for (; q + {self.lanes} <= k; q += {self.lanes}) {{")
        lines += [
            f"      const {self.vector} a{i} = *(const {self.vector}u *)(A + {i * self.lda} + q);"
            for i in range(self.mr)
        ]
        for g in range(group):
            lines.append(
                f"      const {self.vector} b{g} = {read}(B + (j + {g}) * {self.ldb}ll + q);"
            )
            lines += [f"      s{i}_{g} += a{i} * b{g};" for i in range(self.mr)]
        lines.append("    }")
        lines += [f"    {self.scalar} t{i}_{g} = {add}(s{i}_{g});" for i, g in tile]
        lines.append("    for (; q < k; ++q) {")
        for i, g in tile:
            element = f"B[(j + {g}) * {self.ldb}ll + q]"
            if self.stored:
                element = scalar_load(unit, self.stored, element)
            lines.append(f"      t{i}_{g} += A[{i * self.lda} + q] * {element};")
        lines.append("    }")
        for i, g in tile:
            at = f"C[{i * self.tile_ld + g} + j]"
            lines.append(f"    {at} = first ? t{i}_{g} : {at} + t{i}_{g};")
        return [*lines, "  }"]


def columns_together(rows: int) -> int:
    """Columns whose sums with some rows are kept in registers together."""
    return next((n for n in _COLUMNS if n * rows <= _SUMS), _COLUMNS[-1])


def lane_sum(unit: Unit, scalar: str, vector: str, lanes: int) -> str:
    """`scalar f(vector)`: the sum of all lanes, halves first."""
    name = f"gaf_lane_sum_{vector}"
    lines = [f"static inline {scalar} {name}({vector} x) {{"]
    step = lanes // 2
    while step:
        order = ", ".join(str((lane + step) % lanes) for lane in range(lanes))
        lines.append(f"  x += __builtin_shufflevector(x, x, {order});")
        step //= 2
    return unit.helper(name, "\n".join([*lines, "  return x[0];", "}"]))
