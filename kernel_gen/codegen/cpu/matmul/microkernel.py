"""The register tile: C[MR×NR] (+)= A[MR×k] · B[k×NR], everything in vector registers.

A is read by broadcasting single elements of MR rows (row stride `lda`), so A needs no transposition
into k-major panels: a packed panel is rows as they are, and a prologue that computes along k
writes it with plain vector stores. B is read as NV vectors of W elements per k (row stride `ldb`).
The tile's sums live in a scratch tile between blocks of k, hence a kernel with k in blocks needs
no output of the accumulator's type.

Shape of the tile after Goto and van de Geijn, "Anatomy of high-performance matrix
multiplication", ACM TOMS 34(3), 2008; MR and NV are chosen so that MR·NV + NV + 1 registers do.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.matmul.fused import multiply_add, read_widened, widened_name
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, vector_type
from kernel_gen.ir.dtype import DType


@dataclass(frozen=True, slots=True)
class MicroKernel:
    """One instance. Strides in elements; `aligned` tells that B's vectors are 64-byte aligned."""

    symbol: str
    scalar: str
    vector: str
    lanes: int
    mr: int
    nv: int
    tile_ld: int
    lda: int
    ska: int
    ldb: int
    aligned: bool
    unroll: int
    prefetch: int  # rows of B ahead; 0: none
    pairs: bool = False  # elements of A and B are two bf16 of neighbouring steps
    run: int = 0  # steps of a run of rows that are pointers; 0: rows at a constant distance
    stored: DType | None = None  # B's narrow floats, widened as they are read; None: as summed

    def text(self, unit: Unit) -> str:
        """The C++ function `void symbol(A, B, C, k, first)`; with runs A are pointers to rows, and
        another argument says with which step of a run the sums begin."""
        s, fma = self.scalar, multiply_add(unit, self.scalar, self.vector, self.lanes)
        kept = SCALAR_C[self.stored] if self.stored else s
        if self.stored:
            read_widened(unit, self.stored, self.lanes)
        if self.pairs:
            vector_type(unit, DType.I32, self.lanes)
        at = ", gaf_i64 at" if self.run else ""
        return "\n".join(
            (
                f"static __attribute__((noinline)) void {self.symbol}(const {s} *__restrict A, "
                f"const {kept} *__restrict B, {s} *__restrict C, gaf_i64 k, int first{at}) {{",
                *self._begin(),
                *(self._runs(fma) if self.run else self._steps(fma)),
                *(
                    f"  *({self.vector} *)(C + {self._at(i, j)}) = c{i}_{j};"
                    for i, j in self._tile()
                ),
                "}",
            )
        )

    def _steps(self, fma: str) -> list[str]:
        return [
            f"  for (; k >= {self.unroll}; k -= {self.unroll}) {{",
            *(line for u in range(self.unroll) for line in self._step(u, fma)),
            f"    {self._advance(self.unroll)} B += {self.unroll * self.ldb};",
            "  }",
            *(self._remainder(fma) if self.unroll > 1 else ()),
        ]

    def _runs(self, fma: str) -> list[str]:
        """Run after run; those that all rows have outside their operand count as zeros."""
        s = self.scalar
        rows = (f"const {s} *a{i} = row[{i}] + at * {self.ska};" for i in range(self.mr))
        return [
            f"  const {s} *const *row = (const {s} *const *)A;",
            f"  for (gaf_i64 left = k; left > 0; row += {self.mr}, at = 0) {{",
            f"    k = {self.run} - at < left ? {self.run} - at : left;",
            "    left -= k;",
            f"    if (!row[0]) {{ B += k * {self.ldb}; continue; }}",
            *(f"    {row}" for row in rows),
            *("  " + line for line in self._steps(fma)),
            "  }",
        ]

    def _advance(self, steps: int) -> str:
        """To the element of A `steps` steps on."""
        if not self.run:
            return f"A += {steps * self.ska};"
        return " ".join(f"a{i} += {steps * self.ska};" for i in range(self.mr))

    def _row(self, i: int, u: int) -> str:
        """Row i's element u steps on."""
        return f"a{i}[{u * self.ska}]" if self.run else f"A[{i * self.lda + u * self.ska}]"

    def _tile(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(self.mr) for j in range(self.nv)]

    def _at(self, i: int, j: int) -> int:
        return i * self.tile_ld + j * self.lanes

    def _begin(self) -> list[str]:
        names = ", ".join(f"c{i}_{j}" for i, j in self._tile())
        lines = [f"  {self.vector} {names};", "  if (first) {"]
        lines += [f"    c{i}_{j} = ({self.vector}){{}};" for i, j in self._tile()]
        lines.append("  } else {")
        lines += [
            f"    c{i}_{j} = *(const {self.vector} *)(C + {self._at(i, j)});"
            for i, j in self._tile()
        ]
        return [*lines, "  }"]

    def _step(self, u: int, fma: str) -> list[str]:
        """One step of k: NV loads, MR broadcasts, MR·NV multiply-adds."""
        kind = self.vector if self.aligned else f"{self.vector}u"
        read = widened_name(self.stored, self.lanes) if self.stored else f"*(const {kind} *)"
        if self.pairs:
            return ["    {", *self._pair_step(u, fma), "    }"]
        lines = ["    {"]
        for j in range(self.nv):
            at = u * self.ldb + j * self.lanes
            lines.append(f"      {self.vector} b{j} = {read}(B + {at});")
            if self.prefetch:
                lines.append(f"      __builtin_prefetch(B + {at + self.prefetch * self.ldb});")
        for i in range(self.mr):
            lines.append(
                f"      {{ const {self.vector} a = {self._row(i, u)} - ({self.vector}){{}};"
            )
            lines += [f"        {fma}(c{i}_{j}, a, b{j});" for j in range(self.nv)]
            lines.append("      }")
        return [*lines, "    }"]

    def _pair_step(self, u: int, fma: str) -> list[str]:
        """Two steps of k: dot products of pairs, or the halves of the pairs one after the other."""
        whole = f"gaf_i32x{self.lanes}"
        lines = []
        for j in range(self.nv):
            at = u * self.ldb + j * self.lanes
            lines.append(f"      const {whole} b{j} = *(const {whole} *)(B + {at});")
            if self.prefetch:
                lines.append(f"      __builtin_prefetch(B + {at + self.prefetch * self.ldb});")
        rows = [f"((const int *)A)[{i * self.lda + u * self.ska}]" for i in range(self.mr)]
        lines.append("#ifdef __AVX512BF16__")
        for i, row in enumerate(rows):
            lines.append(f"      {{ const {whole} a = {row} - ({whole}){{}};")
            lines += [
                f'        asm("vdpbf16ps %1, %2, %0" : "+v"(c{i}_{j}) : "v"(a), "v"(b{j}));'
                for j in range(self.nv)
            ]
            lines.append("      }")
        lines.append("#else")
        for half in ("{} << 16", "{} & -65536"):
            parts = ", ".join(
                f"h{j} = ({self.vector})({half.format(f'b{j}')})" for j in range(self.nv)
            )
            lines.append(f"      {{ const {self.vector} {parts};")
            for i, row in enumerate(rows):
                a = half.format(f"({row} - ({whole}){{}})")
                lines.append(f"        {{ const {self.vector} a = ({self.vector})({a});")
                lines += [f"          {fma}(c{i}_{j}, a, h{j});" for j in range(self.nv)]
                lines.append("        }")
            lines.append("      }")
        return [*lines, "#endif"]

    def _remainder(self, fma: str) -> list[str]:
        return [
            "  for (; k > 0; --k) {",
            *self._step(0, fma),
            f"    {self._advance(1)} B += {self.ldb};",
            "  }",
        ]
