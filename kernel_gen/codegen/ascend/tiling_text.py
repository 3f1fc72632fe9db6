"""The tiling data struct, the tiling function and the launcher of a vector kernel, as text.

The tiling function runs on the host. It takes the program's dimensions, and picks for each phase
the tile's height and width, whole rows or steps, and the number of cores: from a tuned point of a
nearby shape where there is one, else by a cost expression over all splits that fit the unified
buffer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gen.codegen.ascend.cube_text import CubePhase
from kernel_gen.codegen.ascend.cube_tiling import CUBE_TILING
from kernel_gen.codegen.ascend.kernel_text import KernelPlan, PhaseVariants, buffer_names
from kernel_gen.codegen.ascend.memory import STORED
from kernel_gen.codegen.ascend.phase import PhaseText
from kernel_gen.codegen.ascend.product import COUNT
from kernel_gen.codegen.ascend.roles import extent_text
from kernel_gen.codegen.ascend.rooms import total_text
from kernel_gen.codegen.ascend.split_reduce import PART
from kernel_gen.codegen.ascend.steps import SIZES, Lanes
from kernel_gen.ir.loopnest import Buffer

_VECTOR = re.compile(r"\s*(?!Copy)\w+(?:<.*>)?\(v\d")
"""A line with a vector instruction, or with a device function of some."""


@dataclass(frozen=True, slots=True)
class TunedPoint:
    """What was measured best for one shape: at most `lanes` lanes a tile (0: any) on `cores`."""

    dims: tuple[int, ...]
    lanes: int
    cores: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What the tiling function knows of the chip. `ub_bytes` is what a kernel may use; rates are of
    one core while all of them read. `cube_byte_cycles` are cycles per byte of a cube core: out of
    memory, out of L2, and of its own copies at best."""

    ub_bytes: int
    cores: int
    bytes_per_cycle: float
    cube_cores: int
    cube_byte_cycles: tuple[float, float, float]


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

_SHARES = """\
// Parts of a reduction: cores per row, each with enough to do.
int64_t Shares(int64_t cores, int64_t rows, int64_t walked, int64_t work)
{
    int64_t parts = rows > 0 ? cores / rows : 1;
    const int64_t most = work / 512 < walked ? work / 512 : walked;
    parts = parts > most ? most : parts;
    return parts < 1 ? 1 : parts;
}
"""

_COMMON = """\
// One way to run a phase. A free extent may be cut into tiles; a split one is shared by cores,
// others are walked by one core.
struct Way {
    int64_t rows, cols, outer, walked;
    bool freeRows, freeCols, splitRows, splitCols;
    int64_t passes, align, unit;  // lanes that a row, and a comparison, are rounded up to
    double copyCycles, workCycles, tileCycles;  // per lane, per lane, per tile
    int64_t (*bytes)(int64_t, int64_t);
};

struct Tile {
    int64_t height, width, tasks;
    double cycles;
};

// Cycles of the slowest core. Copies and computation of neighbouring tiles overlap; of one tile,
// both are seen.
double Cycles(const Way &way, int64_t height, int64_t width, int64_t cores, int64_t *tasks)
{
    const int64_t down = Parts(way.rows, height), across = Parts(way.cols, width);
    *tasks = way.outer * (way.splitRows ? down : 1) * (way.splitCols ? across : 1);
    const int64_t steps =
        way.walked * (way.splitRows ? 1 : down) * (way.splitCols ? 1 : across) * way.passes;
    const int64_t share = Parts(*tasks, cores);
    const double lanes = static_cast<double>(height * UpTo(width, way.align));
    const double copies = lanes * way.copyCycles;
    const double work = way.tileCycles + lanes * way.workCycles;
    const double longer = copies > work ? copies : work;
    return static_cast<double>(share * steps) * (60.0 + longer) + copies + work;
}

// The cheapest tile that fits, or one of height 0.
Tile Choose(const Way &way, int64_t lanes, int64_t cores)
{
    Tile best = {0, 0, 0, 0.0};
    const int64_t factors[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192};
    const int64_t count = static_cast<int64_t>(sizeof(factors) / sizeof(factors[0]));
    for (int64_t i = 0; i < (way.freeCols ? 2 * count : 1); i++) {
        const int64_t across = factors[i % count] * (i < count ? 1 : cores);
        const int64_t all = way.cols > 0 ? way.cols : 1;
        const int64_t part = across > 1 ? UpTo(Parts(all, across), way.unit) : all;
        const int64_t width = way.freeCols && part < all ? part : all;
        for (int64_t j = 0; j < (way.freeRows ? 2 * count : 1); j++) {
            const int64_t down = factors[j % count] * (j < count ? 1 : cores);
            const int64_t height =
                way.freeRows ? Parts(way.rows > 0 ? way.rows : 1, down) : way.rows;
            const bool small = !way.freeCols || width <= way.unit;
            const bool least = height <= 1 && small;
            if (height < 1 || width < 1 || height > kMostRows || way.bytes(height, width) > kUb ||
                (lanes > 0 && height * width > lanes && !least)) {
                continue;
            }
            int64_t tasks = 0;
            const double cycles = Cycles(way, height, width, cores, &tasks);
            if (best.height == 0 || cycles < best.cycles) {
                best = {height, width, tasks, cycles};
            }
        }
    }
    return best;
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
            _COMMON,
        ]
    if plan.has_cube:
        memory, l2, own = limits.cube_byte_cycles
        lines += [
            f"constexpr double kMemoryByteCycles = {memory:.5f};",
            f"constexpr double kL2ByteCycles = {l2:.5f};",
            f"constexpr double kCopyByteCycles = {own:.5f};",
            CUBE_TILING,
        ]
    if plan.parts:
        lines.append(_SHARES)
    for phase in vectors:
        for key, variant in enumerate(phase.variants):
            lines += _bytes(phase, key, variant)
    lines += [*_tuned(plan.dims, tuned), "}  // namespace", ""]
    lines += _function(plan, symbol, limits, lanes, tuned)
    return "\n".join(lines) + "\n"


def _bytes(phase: PhaseVariants, key: int, variant: PhaseText) -> list[str]:
    unit = phase.unit_lanes
    return [
        f"int64_t Bytes{phase.number}Way{key}(int64_t tileHeight, int64_t tileWidth)",
        "{",
        f"    const int64_t pitch = UpTo(tileWidth, {phase.align});",
        f"    [[maybe_unused]] const int64_t tileLanes = UpTo(tileHeight * pitch, {unit});",
        f"    [[maybe_unused]] const int64_t tileCols = UpTo(pitch, {unit});",
        f"    [[maybe_unused]] const int64_t tileRows = UpTo(tileHeight, {unit});",
        "    [[maybe_unused]] const int64_t tileCross = "
        f"UpTo(pitch * UpTo(tileHeight, 16), {unit});",
        f"    return {total_text(variant.layout.rooms(), unit)};",
        "}",
        "",
    ]


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
    dims = plan.dims
    lines = [
        f"// dims: {', '.join(dims) or 'none'}. Returns 0; 1 for another number of dims; 2 where "
        "no tile fits.",
        f'extern "C" int tiling_{symbol}(const int64_t *dims, int nDims, {symbol}_Tiling *out,',
        "    uint32_t *blockDim, uint64_t *workspaceBytes)",
        "{",
        f"    if (nDims != {len(dims)}) {{",
        "        return 1;",
        "    }",
    ]
    if not dims:
        lines.append("    static_cast<void>(dims);")
    lines += [f"    const int64_t {name} = dims[{k}];" for k, name in enumerate(dims)]
    lines += [f"    const int64_t {name} = {poly.text()};" for name, poly in plan.derived.items()]
    known = ("Nearest(dims).lanes", "Nearest(dims).cores") if tuned else (str(lanes), "kCores")
    if plan.has_vector:
        lines.append(f"    const int64_t lanes = {known[0]};")
    lines += [f"    const int64_t cores = {known[1]};", "    int64_t most = 1;"]
    if plan.parts:
        lines.append(f"    const int64_t {plan.parts} = {_parts(plan)};")
    lines += [f"    out->{name} = {name};" for name in plan.symbols]
    mixed = plan.has_cube and plan.has_vector
    for section in plan.sections:  # the product first: vector phases run over its chunks
        if isinstance(section, CubePhase):
            lines += _cube(section, limits, _row_cycles(plan, limits))
    for section in plan.sections:
        if not isinstance(section, CubePhase):
            lines += _phase(section, limits, mixed=mixed)
    most = "cores" if not plan.has_cube else f"Parts(cores * {limits.cube_cores}, {limits.cores})"
    work = plan.workspace.text() if plan.workspace.terms else "0"
    return [
        *lines,
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


def _parts(plan: KernelPlan) -> str:
    """As many parts as leave each core one, but none shorter than a few repeats."""
    first = next(s for s in plan.sections if isinstance(s, PhaseVariants))
    roles = first.variants[0].roles
    outer = [first.nest.extent_text(a) for a in roles.phase.outer if a != PART.name]
    inner = [first.nest.extent_text(a) for a in roles.phase.inner]
    walked = first.nest.extent_text(roles.walked[0])
    rows, work = " * ".join(outer) or "1", " * ".join(inner)
    return f"Shares(cores, {rows}, {walked}, {work})"


def _row_cycles(plan: KernelPlan, limits: Limits) -> str:
    """Cycles of all vector cores for a row of the product, as text; "0" unless they work beside it
    on chunks of rows."""
    parts: list[str] = []
    for section in plan.sections if plan.in_chunks else ():
        if isinstance(section, PhaseVariants):
            phase, nest = section.variants[0].roles.phase, section.nest
            axes = [a for a in (*phase.outer, *phase.inner) if nest.extent(a) != COUNT]
            lanes = " * ".join(nest.extent_text(a) for a in axes) or "1"
            rate = _work(section.variants[0])[1] / 64 / limits.cores
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


def _phase(phase: PhaseVariants, limits: Limits, *, mixed: bool) -> list[str]:
    n = phase.number
    lines = ["    {", "        Tile tile = {0, 0, 0, 0.0};"]
    for key, variant in enumerate(phase.variants):
        lines += [
            "        if (tile.height == 0) {",
            f"            const Way way = {_way(phase, key, variant, limits)};",
            "            tile = Choose(way, lanes, cores);",
            "            if (tile.height == 0) {",
            "                tile = Choose(way, 0, cores);",
            "            }",
            f"            out->key{n} = {key};",
            "        }",
        ]
    tasks = "Parts(tile.tasks, 2)" if mixed else "tile.tasks"
    return [
        *lines,
        "        if (tile.height == 0) {",
        "            return 2;",
        "        }",
        f"        out->height{n} = tile.height;",
        f"        out->width{n} = tile.width;",
        f"        const int64_t tasks = {tasks};",
        "        most = tasks > most ? tasks : most;",
        "    }",
    ]


def _way(section: PhaseVariants, key: int, phase: PhaseText, limits: Limits) -> str:
    roles, nest = phase.roles, section.nest
    inner = set(roles.phase.inner)
    rows = nest.extent_text(roles.row) if roles.row else "1"
    cols = extent_text(nest, roles.col)
    outer = " * ".join(nest.extent_text(a) for a in roles.outer) or "1"
    others = [a for a in roles.walked if a not in (roles.row, roles.col)]
    walked = " * ".join(nest.extent_text(a) for a in others) or "1"
    if PART.name in roles.outer:
        cut = nest.extent_text(roles.walked[0])
        part = f"Parts({cut}, {nest.extent_text(PART.name)})"
        rows = part if roles.walked[0] == roles.row else rows
        cols = part if roles.walked[0] == roles.col else cols
        walked = walked.replace(cut, part, 1) if others else walked
    free_rows = roles.row is not None and not (roles.whole and roles.row in inner)
    free_cols = not (roles.whole and roles.col in inner)
    passes = len(roles.phase.stages) if roles.walked else 1
    moved, vectors = _work(phase)
    copies, work = moved / limits.bytes_per_cycle, 1.4 * vectors / 64
    base = 2500 if inner else 100  # folds are many instructions
    flags = ", ".join(
        "true" if f else "false"
        for f in (free_rows, free_cols, phase.splits_rows, phase.splits_cols)
    )
    return (
        f"{{{rows}, {cols}, {outer}, {walked}, {flags}, {passes}, {section.align}, "
        f"{section.unit_lanes}, {copies:.4f}, {work:.4f}, "
        f"{base + 23 * vectors}.0, "
        f"Bytes{section.number}Way{key}}}"
    )


def _work(phase: PhaseText) -> tuple[int, int]:
    """Bytes moved to and from global memory per lane of a tile, and vector instructions."""
    queues = [*phase.layout.ins, *phase.layout.outs]
    tile = Lanes.FULL if phase.roles.row else Lanes.COL
    moved = sum(r.size for r in queues if r.lanes is tile)
    vectors = sum(_VECTOR.match(line) is not None for line in phase.layout.lines)
    return moved, max(vectors, 1)


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
