"""From a problem and its tiling to the kernel's source."""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.codegen.cpu.attention.after import after_function
from kernel_gen.codegen.cpu.attention.driver import Driver
from kernel_gen.codegen.cpu.attention.frame import Frame
from kernel_gen.codegen.cpu.attention.operands import (
    InPlace,
    key_function,
    key_in_place,
    place_function,
    query_function,
    value_function,
    value_in_place,
)
from kernel_gen.codegen.cpu.attention.problem import Problem
from kernel_gen.codegen.cpu.attention.scratch import scratch, shared_elems
from kernel_gen.codegen.cpu.attention.sight import finite_function, sight_function
from kernel_gen.codegen.cpu.attention.softmax import softmax_function
from kernel_gen.codegen.cpu.attention.tiling import Operand, Tiling
from kernel_gen.codegen.cpu.frame import entry_point
from kernel_gen.codegen.cpu.matmul.dot_kernel import DotKernel
from kernel_gen.codegen.cpu.matmul.microkernel import MicroKernel
from kernel_gen.codegen.cpu.scratch import barrier
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.types import Lanes
from kernel_gen.codegen.source import KernelSource

_UNROLL = 4


def generate(problem: Problem, tiling: Tiling, symbol: str) -> KernelSource:
    """The source of one kernel; `symbol` is its C name."""
    unit = Unit()
    lanes = Lanes(tiling.lanes, max(4, problem.dtype.bytes))
    frame = Frame(symbol, Emitter(problem.nest, unit, lanes), problem, tiling)
    key = key_in_place(problem) if tiling.key is Operand.DOT else None
    value = value_in_place(problem, tiling.lanes) if tiling.value is Operand.PLACE else None
    for kernel in _tiles(frame, key, value):
        unit.function(kernel)
    for function in _functions(frame, key, value):
        unit.function(function)
    if tiling.splits > 1:
        barrier(unit)
    unit.function(Driver(frame, key, value).text())
    team = entry_point(unit, symbol, parallel=tiling.team)
    return KernelSource(
        entry=symbol,
        files=((f"{symbol}.cpp", unit.text()),),
        scratch_bytes=scratch(problem, tiling).own * problem.dtype.bytes,
        shared_bytes=shared_elems(problem, tiling) * problem.dtype.bytes,
        team=team,
    )


def _functions(frame: Frame, key: InPlace | None, value: InPlace | None) -> list[str]:
    found = [query_function(frame)]
    found.append(key_function(frame) if key is None else place_function(frame, "key_at", key))
    found.append(
        value_function(frame) if value is None else place_function(frame, "value_at", value)
    )
    if frame.problem.limits:
        found += [finite_function(frame), sight_function(frame)]
    return [*found, softmax_function(frame), after_function(frame)]


def _tiles(frame: Frame, key: InPlace | None, value: InPlace | None) -> list[str]:
    """The register tiles of the two products."""
    p, t = frame.problem, frame.tiling
    found = []
    if key is None:
        lda = t.padded(t.depth(p))
        kernel = _tile(frame, "qk", t.nv, t.padded(t.keys), lda, t.nr, aligned=True)
        kernel = replace(kernel, pairs=t.key is Operand.PAIRS)
        found.append(kernel.text(frame.unit))
    else:
        dot = DotKernel(
            symbol=f"{frame.symbol}_qk",
            scalar=frame.scalar,
            vector=frame.vector,
            lanes=t.lanes,
            mr=t.mr,
            tile_ld=t.padded(t.keys),
            lda=t.padded(p.d),
            ldb=key.row_stride,
            stored=key.stored,
        )
        found.append(dot.text(frame.unit))
    widths = {"pv": t.nv} if p.e >= t.nr or t.tail_nv(p) == t.nv else {}
    if t.tail_nv(p) != t.nv:
        widths["pvtail"] = t.tail_nv(p)
    for name, nv in widths.items():
        ldb = value.row_stride if value is not None else nv * t.lanes
        kernel = _tile(frame, name, nv, t.padded(p.e), t.padded(t.keys), ldb, aligned=value is None)
        stored = value.stored if value else None
        kernel = replace(kernel, stored=stored, pairs=t.value is Operand.PAIRS)
        found.append(kernel.text(frame.unit))
    return found


def _tile(
    frame: Frame, name: str, nv: int, tile_ld: int, lda: int, ldb: int, *, aligned: bool
) -> MicroKernel:
    return MicroKernel(
        symbol=f"{frame.symbol}_{name}",
        scalar=frame.scalar,
        vector=frame.vector,
        lanes=frame.tiling.lanes,
        mr=frame.tiling.mr,
        nv=nv,
        tile_ld=tile_ld,
        lda=lda,
        ska=1,
        ldb=ldb,
        aligned=aligned,
        unroll=_UNROLL,
        prefetch=0,
    )
