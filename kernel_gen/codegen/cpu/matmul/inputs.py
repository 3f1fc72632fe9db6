"""The operands of a matmul kernel as its loops see them: where they lie and how far they step."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.matmul.problem import Problem, plain_load
from kernel_gen.codegen.cpu.matmul.runs import left_runs
from kernel_gen.codegen.cpu.matmul.scratch import right_bytes
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Tiling
from kernel_gen.ir.dtype import DType


@dataclass(frozen=True, slots=True)
class Direct:
    """An operand read in place: `buffer[offset + line·line_stride + k·step]`, in elements.

    A line is a row of A or a column of B. `offset` is a C expression over the batch variables and,
    for B, those of the column slab.
    """

    buffer: int
    offset: str
    line_stride: int
    step: int
    stored: DType | None = None  # narrow floats or bytes, widened where they are multiplied


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the text of loops and packing is made of. `scalar` is the C type of elements."""

    symbol: str
    scalar: str
    problem: Problem
    tiling: Tiling
    left: Direct | None  # None: packed
    right: tuple[Direct, ...] | None  # by section; None: packed
    packed: tuple[int, ...] | None  # buffers that are packed at load, by section

    def operand(self, buffer: int) -> str:
        """C expression of a pointer to a buffer's elements."""
        return f"(const {self.scalar} *)args->operands[{buffer}]"

    def packed_at(self, section: int) -> str:
        """Where a section that was packed at load begins for product b."""
        assert self.packed is not None
        buffer = self.packed[section]
        place = self.packed[:section].count(buffer)
        product = "b" if self.problem.right_has_batch else "0"
        return f"{self.operand(buffer)} + {self.section_at(place, product)}"

    @property
    def section_elems(self) -> int:
        """Elements of one section of one product, packed."""
        p, t = self.problem, self.tiling
        return right_bytes(p, t, t.col_tiles(p)) // p.product.dtype.bytes

    @property
    def marked(self) -> tuple[int, ...]:
        """Buffers packed at load behind whose elements stands whether all of them are finite. Runs
        of zeros may be left out then: products with them are zeros, and no NaN."""
        p, t = self.problem, self.tiling
        runs = left_runs(p) if t.left is Operand.POINTERS else None
        plain = all(plain_load(p.nest, p.section(n).rhs) for n in range(p.sections))
        marked = runs is not None and runs.guards and plain and self.packed
        return tuple(sorted(set(self.packed or ()))) if marked else ()

    def packed_elems(self, buffer: int) -> int:
        """Elements of a constant that is packed at load."""
        assert self.packed is not None
        return self.packed.count(buffer) * max(self.problem.b, 1) * self.section_elems

    def section_at(self, place: int, product: str) -> str:
        """Where the section at `place` of a product begins among packed sections."""
        return f"({place * max(self.problem.b, 1)}ll + {product}) * {self.section_elems}ll"
