"""The tiling data struct, the tiling function and the launcher of a vector kernel, as text.

The tiling function runs on the host. It takes the program's dimensions, and picks for each phase
the tile's height and width, whole rows or steps, and the number of cores: from a tuned point of a
nearby shape where there is one, else by a cost expression over all splits that fit the unified
buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gen.codegen.ascend.cube.bias import ROOM_BYTES
from kernel_gen.codegen.ascend.cube.text import CubePhase
from kernel_gen.codegen.ascend.cube.tiling import CUBE_TILING
from kernel_gen.codegen.ascend.instructions.steps import SIZES
from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan, PhaseVariants, buffer_names
from kernel_gen.codegen.ascend.kernel.vector_tiling import (
    CHOOSE,
    SHARES,
    Limits,
    bytes_function,
    choice_of_tile,
    per_lane,
    shares,
)
from kernel_gen.codegen.ascend.moves.memory import STORED
from kernel_gen.codegen.ascend.tiles.chunks import COUNT
from kernel_gen.ir.loopnest import Buffer

_L1_BYTES = 524288


@dataclass(frozen=True, slots=True)
class TunedPoint:
    """What was measured best for one shape: at most `lanes` lanes a tile (0: any) on `cores`."""

    dims: tuple[int, ...]
    lanes: int
    cores: int


def struct_text(plan: KernelPlan, symbol: str) -> str:
    """The header that kernel and tiling function share."""
    fields = [f"int64_t {s};" for s in plan.symbols]
    for section in plan.sections:
        n = section.number
        vector = isinstance(section, PhaseVariants)
        parts = (
            "height width key" if vector else "tileM tileN strip tileK chunkK stages kept chunkM"
        )
        fields += [f"int64_t {part}{n};" for part in parts.split()]
    body = "\n".join(f"    {f}" for f in fields)
    return (
        f"// What {symbol} is told of a call: extents, then the tile of each phase.\n"
        f"#pragma once\n\n#include <stdint.h>\n\nstruct {symbol}_Tiling {{\n{body}\n}};\n"
    )


_PARTS = """\
int64_t UpTo(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

int64_t Parts(int64_t extent, int64_t size)
{
    return (extent + size - 1) / size;
}
"""


def tiling_text(
    plan: KernelPlan, symbol: str, limits: Limits, lanes: int, tuned: Sequence[TunedPoint]
) -> str:
    """The tiling function's source. `lanes` bounds a tile where no tuned point does (0: no)."""
    vectors = [s for s in plan.sections if isinstance(s, PhaseVariants)]
    lines = [
        f"// Tiling of {symbol}: runs on the host, once per shape.",
        *(["#include <cmath>"] if plan.dims and tuned else []),
        f'#include "{symbol}_tiling.h"',
        "",
        "namespace {",
        "",
        f"constexpr int64_t kCores = {limits.cores};",
        "",
        _PARTS,
    ]
    if vectors:
        lines += [
            f"constexpr int64_t kUb = {limits.ub_bytes};  // bytes of the unified buffer",
            "constexpr int64_t kMostRows = 2040;  // 255 repeats of 8 rows",
            "",
            CHOOSE,
        ]
    if plan.has_cube:
        memory, l2, own = limits.cube_byte_cycles
        lines += [
            f"constexpr double kMemoryByteCycles = {memory:.5f};",
            f"constexpr double kL2ByteCycles = {l2:.5f};",
            f"constexpr double kCopyByteCycles = {own:.5f};",
            f"constexpr int64_t kL1 = {_operand_bytes(plan)};  // bytes of L1 for operands",
            CUBE_TILING,
        ]
    if plan.parts:
        lines.append(SHARES)
    for phase in vectors:
        for key, variant in enumerate(phase.variants):
            lines += bytes_function(phase, key, variant)
    lines += [*_tuned(plan.dims, tuned), "}  // namespace", ""]
    lines += _function(plan, symbol, limits, lanes, tuned)
    return "\n".join(lines) + "\n"


def _operand_bytes(plan: KernelPlan) -> int:
    """Bytes of L1 less what a bias takes."""
    biased = any(isinstance(s, CubePhase) and s.bias is not None for s in plan.sections)
    return _L1_BYTES - (ROOM_BYTES if biased else 0)


def _tuned(dims: Sequence[str], tuned: Sequence[TunedPoint]) -> list[str]:
    """The table of tuned points, and the search for the one nearest in logarithms."""
    if not tuned:
        return []
    n = len(dims)
    kind = f"    int64_t dims[{max(n, 1)}], lanes, cores;"
    rows = [
        f"    {{{{{', '.join(map(str, p.dims)) or '0'}}}, {p.lanes}, {p.cores}}}," for p in tuned
    ]
    lines = ["struct Tuned {", kind, "};", "", "constexpr Tuned kTuned[] = {", *rows, "};", ""]
    if not n:
        return [*lines, "const Tuned &Nearest(const int64_t *)", "{", "    return kTuned[0];", "}",
                ""]  # fmt: skip
    return [
        *lines,
        "const Tuned &Nearest(const int64_t *dims)",
        "{",
        "    const Tuned *best = kTuned;",
        "    double least = -1.0;",
        "    for (const Tuned &point : kTuned) {",
        "        double apart = 0.0;",
        f"        for (int k = 0; k < {n}; k++) {{",
        "            apart += std::fabs(std::log(static_cast<double>(dims[k] + 1)) -",
        "                               std::log(static_cast<double>(point.dims[k] + 1)));",
        "        }",
        "        if (least < 0.0 || apart < least) {",
        "            least = apart;",
        "            best = &point;",
        "        }",
        "    }",
        "    return *best;",
        "}",
        "",
    ]


def _function(
    plan: KernelPlan,
    symbol: str,
    limits: Limits,
    lanes: int,
    tuned: Sequence[TunedPoint],
) -> list[str]:
    most = "cores" if not plan.has_cube else f"Parts(cores * {limits.cube_cores}, {limits.cores})"
    work = plan.workspace.text() if plan.workspace.terms else "0"
    return [
        f"// dims: {', '.join(plan.dims) or 'none'}. Returns 0; 1 for another number of dims; "
        "2 where no tile fits.",
        f'extern "C" int tiling_{symbol}(const int64_t *dims, int nDims, {symbol}_Tiling *out,',
        "    uint32_t *blockDim, uint64_t *workspaceBytes)",
        "{",
        *_extents(plan),
        *_choices(plan, limits, lanes, tuned),
        f"    const int64_t bound = {most};",
        "    *blockDim = static_cast<uint32_t>(most < bound ? most : bound);",
        f"    *workspaceBytes = static_cast<uint64_t>({work});",
        "    return 0;",
        "}",
        "",
        f'extern "C" uint64_t tiling_bytes_{symbol}()',
        "{",
        f"    return sizeof({symbol}_Tiling);",
        "}",
    ]


def _extents(plan: KernelPlan) -> list[str]:
    """The extents that a kernel is told, from the given ones."""
    dims = plan.dims
    return [
        f"    if (nDims != {len(dims)}) {{",
        "        return 1;",
        "    }",
        *([] if dims else ["    static_cast<void>(dims);"]),
        *(f"    const int64_t {name} = dims[{k}];" for k, name in enumerate(dims)),
        *(f"    const int64_t {name} = {poly.text()};" for name, poly in plan.derived.items()),
    ]


def _choices(
    plan: KernelPlan, limits: Limits, lanes: int, tuned: Sequence[TunedPoint]
) -> list[str]:
    """Tiles of all sections, and `most`, the number of tasks of the largest one."""
    lines: list[str] = []
    known = ("Nearest(dims).lanes", "Nearest(dims).cores") if tuned else (str(lanes), "kCores")
    if plan.has_vector:
        lines.append(f"    const int64_t lanes = {known[0]};")
    lines += [f"    const int64_t cores = {known[1]};", "    int64_t most = 1;"]
    if plan.parts:
        lines.append(f"    const int64_t {plan.parts} = {shares(plan)};")
    lines += [f"    out->{name} = {name};" for name in plan.symbols]
    mixed = plan.has_cube and plan.has_vector
    for section in plan.sections:  # the product first: vector phases run over its chunks
        if isinstance(section, CubePhase):
            lines += _cube(section, limits, _row_cycles(plan, limits))
    for section in plan.sections:
        if not isinstance(section, CubePhase):
            lines += choice_of_tile(section, limits, mixed=mixed)
    return lines


def _row_cycles(plan: KernelPlan, limits: Limits) -> str:
    """Cycles of all vector cores for a row of the product, as text; "0" unless they work beside it
    on chunks of rows."""
    parts: list[str] = []
    for section in plan.sections if plan.in_chunks else ():
        if isinstance(section, PhaseVariants):
            phase, nest = section.variants[0].roles.phase, section.nest
            axes = [a for a in (*phase.outer, *phase.inner) if nest.extent(a) != COUNT]
            lanes = " * ".join(nest.extent_text(a) for a in axes) or "1"
            rate = per_lane(section.variants[0])[2] / 64 / limits.cores
            parts.append(f"{rate:.5f} * static_cast<double>({lanes})")
    return " + ".join(parts) or "0"


def _cube(p: CubePhase, limits: Limits, row_cycles: str) -> list[str]:
    n = p.number
    batch = " * ".join(e for _, e in p.batch) or "1"
    lines = ["    int64_t rowsAtOnce = 0;", "    {"]
    in_chunks = row_cycles != "0"
    rows = f"Chunk(b, {p.m}, {p.n}, {limits.cube_cores})" if in_chunks else p.m
    for operand in (p.lhs, p.rhs):
        if operand.stride.const is None:
            lines += [f"        if ({operand.stride.text()} > 65535) {{", "            return 2;",
                      "        }"]  # fmt: skip
    return [
        *lines,
        f"        const Matrices x = {{{p.m}, {p.n}, {p.k}, {batch}, {p.size}, "
        f"{SIZES[p.out.place.ctype]}, {limits.cube_cores}, {row_cycles}}};",
        f"        const Blocking b = Block(x, {p.blocks.text()});",
        f"        out->tileM{n} = b.m;",
        f"        out->tileN{n} = b.n;",
        f"        out->strip{n} = b.strip;",
        f"        out->tileK{n} = b.k;",
        f"        out->chunkK{n} = b.chunk;",
        f"        out->stages{n} = b.stages;",
        f"        out->kept{n} = b.kept;",
        f"        rowsAtOnce = {rows};",
        "        rowsAtOnce = rowsAtOnce > 0 ? rowsAtOnce : 1;",
        f"        out->chunkM{n} = rowsAtOnce;",
        "        most = b.tasks > most ? b.tasks : most;",
        "    }",
        *(["    const int64_t s9998 = rowsAtOnce;"] if in_chunks else []),
    ]


def launcher_text(symbol: str, buffers: Sequence[Buffer]) -> str:
    """The file that launches the kernel: compiled by the device compiler only, as the launch syntax
    is no C++."""
    names = buffer_names(buffers)
    given = "".join(f"uint8_t *{n}, " for n in names)
    kinds = ", ".join(f"{n}: {STORED[b.type.dtype]}" for n, b in zip(names, buffers, strict=True))
    return (
        f"// Launches {symbol} on a stream. Operands lie in device memory ({kinds});\n"
        f"// `tiling` is a {symbol}_Tiling there.\n"
        '#include "acl/acl.h"\n#include "kernel_operator.h"\n\n'
        f'extern "C" __global__ __aicore__ void {symbol}('
        f"{', '.join(f'GM_ADDR {n}' for n in names)}, GM_ADDR workspace, GM_ADDR tiling);\n\n"
        f'extern "C" void launch_{symbol}(uint32_t blockDim, aclrtStream stream, {given}'
        "uint8_t *workspace, uint8_t *tiling)\n{\n"
        f"    {symbol}<<<blockDim, nullptr, stream>>>({', '.join(names)}, workspace, tiling);\n}}\n"
    )
