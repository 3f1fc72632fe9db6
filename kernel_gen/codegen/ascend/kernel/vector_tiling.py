"""How a vector phase's tile is chosen at run time: the cost expression and a search over all splits
that fit, as text of the tiling function."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_gen.codegen.ascend.instructions.scalar_work import ScalarRates
from kernel_gen.codegen.ascend.instructions.steps import SPACED, Lanes
from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan, PhaseVariants
from kernel_gen.codegen.ascend.phases.phase import PhaseText
from kernel_gen.codegen.ascend.phases.rooms import total_text
from kernel_gen.codegen.ascend.tiles.roles import extent_text
from kernel_gen.codegen.ascend.tiles.split_reduce import PART

_VECTOR = re.compile(r"\s*(?!Copy)\w+(?:<.*>)?\(v\d")
"""A line with a vector instruction, or with a device function of some."""


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
    scalar: ScalarRates


SHARES = """\
// Parts of a reduction: cores per row, each with enough to do.
int64_t Shares(int64_t cores, int64_t rows, int64_t walked, int64_t work)
{
    int64_t parts = rows > 0 ? cores / rows : 1;
    const int64_t most = work / 512 < walked ? work / 512 : walked;
    parts = parts > most ? most : parts;
    return parts < 1 ? 1 : parts;
}
"""

LARGEST = -1
"""In place of the lanes of a tile at most: the largest tile that fits, whatever it is thought to
cost."""

CHOOSE = (
    f"""\
constexpr int64_t kLargest = {LARGEST};  // as lanes: whatever it costs

"""
    + """\
// One way to run a phase. A free extent may be cut into tiles; a split one is shared by cores,
// others are walked by one core.
struct Way {
    int64_t rows, cols, outer, walked;
    bool freeRows, freeCols, splitRows, splitCols;
    int64_t passes, align, unit;  // lanes that a row, and a comparison, are rounded up to
    double copyCycles, crossCycles;  // per lane: of rows, of what is transposed in the buffer
    double workCycles, tileCycles;   // per lane, per tile
    double tileScalar, rowScalar, colScalar, laneScalar;  // of the scalar unit: per tile, row …
    int64_t (*bytes)(int64_t, int64_t);
};

struct Tile {
    int64_t height, width, tasks;
    double cycles;
};

// Cycles of the slowest core. Copies, computation and the scalar unit's part of neighbouring tiles
// overlap; of one tile, all are seen.
double Cycles(const Way &way, int64_t height, int64_t width, int64_t cores, int64_t *tasks)
{
    const int64_t down = Parts(way.rows, height), across = Parts(way.cols, width);
    *tasks = way.outer * (way.splitRows ? down : 1) * (way.splitCols ? across : 1);
    const int64_t steps =
        way.walked * (way.splitRows ? 1 : down) * (way.splitCols ? 1 : across) * way.passes;
    const int64_t share = Parts(*tasks, cores);
    const double lanes = static_cast<double>(height * UpTo(width, way.align));
    // What is transposed comes in pieces as long as the tile is high, of whole 16 and a start.
    const double crossed = static_cast<double>(width * (UpTo(height, 16) + 16));
    const double copies = lanes * way.copyCycles + crossed * way.crossCycles;
    const double work = way.tileCycles + lanes * way.workCycles;
    const double scalar = way.tileScalar + static_cast<double>(height) * way.rowScalar +
                          static_cast<double>(width) * way.colScalar +
                          static_cast<double>(height * width) * way.laneScalar;
    const double either = copies > work ? copies : work;
    const double longer = scalar > either ? scalar : either;
    return static_cast<double>(share * steps) * (60.0 + longer) + copies + work + scalar;
}

// The cheapest tile that fits, or the largest one; or one of height 0.
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
            const bool better = lanes == kLargest
                                    ? height * width > best.height * best.width
                                    : cycles < best.cycles;
            if (best.height == 0 || better) {
                best = {height, width, tasks, cycles};
            }
        }
    }
    return best;
}
"""
)


def bytes_function(phase: PhaseVariants, key: int, variant: PhaseText) -> list[str]:
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


def shares(plan: KernelPlan) -> str:
    """As many parts as leave each core one, but none shorter than a few repeats."""
    first = next(s for s in plan.sections if isinstance(s, PhaseVariants))
    roles = first.variants[0].roles
    outer = [first.nest.extent_text(a) for a in roles.phase.outer if a != PART.name]
    inner = [first.nest.extent_text(a) for a in roles.phase.inner]
    walked = first.nest.extent_text(roles.walked[0])
    rows, work = " * ".join(outer) or "1", " * ".join(inner)
    return f"Shares(cores, {rows}, {walked}, {work})"


def choice_of_tile(phase: PhaseVariants, limits: Limits, *, mixed: bool) -> list[str]:
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
    moved, crossed, vectors = per_lane(phase)
    copies, turned = moved / limits.bytes_per_cycle, crossed / limits.bytes_per_cycle
    work = 1.4 * vectors / 64
    scalar = ", ".join(f"{c:.1f}" for c in phase.scalar_work.cycles(limits.scalar))
    base = 2500 if inner else 100  # folds are many instructions
    flags = ", ".join(
        "true" if f else "false"
        for f in (free_rows, free_cols, phase.splits_rows, phase.splits_cols)
    )
    return (
        f"{{{rows}, {cols}, {outer}, {walked}, {flags}, {passes}, {section.align}, "
        f"{section.unit_lanes}, {copies:.4f}, {turned:.4f}, {work:.4f}, "
        f"{base + 23 * vectors}.0, {scalar}, "
        f"Bytes{section.number}Way{key}}}"
    )


def per_lane(phase: PhaseText) -> tuple[int, int, int]:
    """Bytes moved to and from global memory per lane of a tile, those that are transposed in the
    buffer apart, and vector instructions."""
    queues = [*phase.layout.ins, *phase.layout.outs]
    tile = Lanes.FULL if phase.roles.row else Lanes.COL
    times = {tile: 1, **{lanes: apart for apart, lanes in SPACED.items()}}
    moved = sum(r.size * times.get(r.lanes, 0) for r in queues)
    crossed = sum(r.size for r in queues if r.lanes is Lanes.CROSS)
    vectors = sum(_VECTOR.match(line) is not None for line in phase.layout.lines)
    return moved, crossed, max(vectors, 1)
