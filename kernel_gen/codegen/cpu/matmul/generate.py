"""From a problem and its tiling to the kernel's source."""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.frame import entry_point
from kernel_gen.codegen.cpu.matmul.after import after_function
from kernel_gen.codegen.cpu.matmul.at_load import pack_function, pack_of
from kernel_gen.codegen.cpu.matmul.block import Block
from kernel_gen.codegen.cpu.matmul.dot_kernel import DotKernel
from kernel_gen.codegen.cpu.matmul.driver import Driver
from kernel_gen.codegen.cpu.matmul.frame import Frame
from kernel_gen.codegen.cpu.matmul.inputs import Direct, Inputs
from kernel_gen.codegen.cpu.matmul.left import left_function
from kernel_gen.codegen.cpu.matmul.microkernel import MicroKernel
from kernel_gen.codegen.cpu.matmul.operand import constant_buffers, left_in_place, right_in_place
from kernel_gen.codegen.cpu.matmul.pointers import pointers_function
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.right import right_function
from kernel_gen.codegen.cpu.matmul.row_epilogue import rows_function
from kernel_gen.codegen.cpu.matmul.runs import left_runs
from kernel_gen.codegen.cpu.matmul.scratch import scratch
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Tiling
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.types import Lanes
from kernel_gen.codegen.flat.linear import flatten
from kernel_gen.codegen.source import KernelSource


def generate(problem: Problem, tiling: Tiling, symbol: str) -> KernelSource:
    """The source of one kernel; `symbol` is its C name."""
    if tiling.turned:
        problem = replace(problem, rows=(*problem.rows[1:], problem.rows[0]))
    unit = Unit()
    lanes = Lanes(tiling.lanes, max(4, problem.product.dtype.bytes))
    frame = Frame(symbol, Emitter(flatten(problem.nest), unit, lanes), problem, tiling)
    left = left_in_place(problem) if tiling.left is Operand.DIRECT else None
    in_place = tiling.right in (Operand.DIRECT, Operand.DOT)
    right = right_in_place(problem, tiling.right) if in_place else None
    packed = constant_buffers(problem) if tiling.right is Operand.LOAD else None
    inputs = Inputs(symbol, frame.scalar, problem, tiling, left, right, packed)
    if right is not None and tiling.right is Operand.DOT:
        unit.function(_dot_kernel(frame, left, right[0]).text(unit))
    else:
        for kernel in _micro_kernels(frame, left, right):
            unit.function(kernel.text(unit))
    if tiling.left.is_prepared:
        listed = tiling.left is Operand.POINTERS
        unit.function(pointers_function(frame, inputs) if listed else left_function(frame))
    if right is None:
        for section in range(problem.sections):
            unit.function(right_function(frame, section))
    unit.function(after_function(frame))
    if problem.finishes_rows:
        unit.function(rows_function(frame))
    unit.function(Block(inputs).text())
    unit.function(Driver(inputs).text())
    team = entry_point(unit, symbol, parallel=tiling.team)
    for buffer in sorted(set(packed or ())):
        unit.function(pack_function(inputs, buffer))
    parts = scratch(problem, tiling)
    return KernelSource(
        entry=symbol,
        files=((f"{symbol}.cpp", unit.text()),),
        packs=tuple(pack_of(inputs, buffer) for buffer in sorted(set(packed or ()))),
        scratch_bytes=parts.own,
        shared_bytes=parts.shared,
        team=team,
    )


def _micro_kernels(
    frame: Frame, left: Direct | None, right: tuple[Direct, ...] | None
) -> list[MicroKernel]:
    """The full register tile, and one of fewer vectors where columns do not fill the last tile."""
    p, t = frame.problem, frame.tiling
    runs = left_runs(p) if t.left is Operand.POINTERS else None
    evenly = left or runs
    widths = {"tile": t.nv}
    if t.tail_nv(p) != t.nv:
        widths["tail"] = t.tail_nv(p)
    return [
        MicroKernel(
            symbol=f"{frame.symbol}_{name}",
            scalar=frame.scalar,
            vector=frame.vector,
            lanes=t.lanes,
            mr=t.mr,
            nv=nv,
            tile_ld=t.nr,
            lda=left.line_stride if left else t.left_ld(p),
            ska=evenly.step if evenly else 1,
            ldb=right[0].step if right else nv * t.lanes,
            aligned=right is None,
            unroll=t.unroll,
            prefetch=t.prefetch,
            pairs=t.pairs,
            run=extent(p.depth[-1]) if runs else 0,
        )
        for name, nv in widths.items()
    ]


def _dot_kernel(frame: Frame, left: Direct | None, right: Direct) -> DotKernel:
    t = frame.tiling
    return DotKernel(
        symbol=f"{frame.symbol}_tile",
        scalar=frame.scalar,
        vector=frame.vector,
        lanes=t.lanes,
        mr=t.mr,
        tile_ld=t.nr,
        lda=left.line_stride if left else t.left_ld(frame.problem),
        ldb=right.line_stride,
        stored=right.stored,
    )
