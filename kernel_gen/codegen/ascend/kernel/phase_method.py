"""A vector phase as a method of the kernel's class: sizes of a tile, a core's share of the tasks,
the rooms in UB, and the body."""

from __future__ import annotations

from kernel_gen.codegen.ascend.instructions.layout import Room
from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan, PhaseVariants
from kernel_gen.codegen.ascend.phases.phase import PhaseText
from kernel_gen.codegen.ascend.phases.rooms import bytes_text
from kernel_gen.codegen.ascend.tiles.roles import extent_text


def phase_method(section: PhaseVariants, key: int, plan: KernelPlan) -> list[str]:
    """The method that runs variant `key` of a phase."""
    phase, number = section.variants[key], section.number
    lines = [
        f"    // {_what(phase)}",
        f"    __aicore__ inline void Phase{number}Way{key}()",
        "    {",
        *_sizes(section),
        *_tasks(section, phase),
        *_share(plan),
    ]
    for room in phase.layout.rooms():
        lines += _room(room, section.unit_lanes)
    body = phase.layout.lines
    return [*_used(lines, "\n".join(body)), *body, "    }"]


def _what(phase: PhaseText) -> str:
    roles = phase.roles
    kind = "whole rows" if roles.whole else "walked in steps"
    how = f", {kind}" if roles.phase.inner else ""
    tile = f"{roles.row or 'one row'} x {roles.col}"
    return f"Tiles of {tile}{how}; each core takes a share of the tasks."


def _sizes(section: PhaseVariants) -> list[str]:
    """Extents of a whole tile, and its lanes."""
    number, lanes = section.number, section.unit_lanes
    return [
        f"        const int32_t tileHeight = static_cast<int32_t>(tiling->height{number});",
        f"        const int32_t tileWidth = static_cast<int32_t>(tiling->width{number});",
        f"        const int32_t pitch = UpTo(tileWidth, {section.align});",
        f"        const int32_t tileLanes = UpTo(tileHeight * pitch, {lanes});",
        f"        const int32_t tileCols = UpTo(pitch, {lanes});",
        f"        const int32_t tileRows = UpTo(tileHeight, {lanes});",
        f"        const int32_t tileCross = UpTo(pitch * UpTo(tileHeight, 16), {lanes});",
    ]


def _tasks(section: PhaseVariants, phase: PhaseText) -> list[str]:
    """The number of tasks: one per tile and place on the other outer axes."""
    nest, roles = section.nest, phase.roles
    lines: list[str] = []
    tasks = [nest.extent_text(axis) for axis in roles.outer]
    if phase.splits_rows and roles.row:
        extent = nest.extent_text(roles.row)
        lines.append(f"        const int64_t rowTiles = ({extent} + tileHeight - 1) / tileHeight;")
        tasks.append("rowTiles")
    if phase.splits_cols:
        extent = extent_text(nest, roles.col)
        lines.append(f"        const int64_t colTiles = ({extent} + tileWidth - 1) / tileWidth;")
        tasks.append("colTiles")
    lines.append(f"        const int64_t tasks = {' * '.join(tasks) or '1'};")
    return lines


def _share(plan: KernelPlan) -> list[str]:
    """The tasks of this core."""
    mixed = plan.has_cube and plan.has_vector
    # A mixed kernel is a MIX_AIC_1_2: releases spell the call that tells its 2 differently.
    cores = "GetBlockNum() * 2" if mixed else "GetBlockNum()"
    lines: list[str] = []
    core = "GetBlockIdx()"
    if plan.in_chunks:
        # Another core has a task more in each chunk: its group would fall behind.
        turn = "s9997 / s9998 * 2"
        lines.append(f"        const int64_t core = (GetBlockIdx() + {turn}) % ({cores});")
        core = "core"
    return [
        *lines,
        f"        const int64_t first = tasks * {core} / ({cores});",
        f"        const int64_t last = tasks * ({core} + 1) / ({cores});",
    ]


def _used(lines: list[str], rest: str) -> list[str]:
    """The lines without declarations of sizes that nothing mentions."""
    while True:
        words = _words("\n".join([*lines, rest]))
        kept = [line for line in lines if not _unused_size(line, words)]
        if len(kept) == len(lines):
            return kept
        lines = kept


def _unused_size(line: str, words: list[str]) -> bool:
    parts = line.split()
    return parts[:2] == ["const", "int32_t"] and words.count(parts[2]) == 1


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _room(room: Room, unit_lanes: int) -> list[str]:
    size = bytes_text(room, unit_lanes)
    if room.name.startswith(("buffer", "indices")):
        return [
            f"        TBuf<TPosition::VECCALC> {room.name};",
            f"        pipe.InitBuffer({room.name}, static_cast<uint32_t>({size}));",
        ]
    place = "VECIN" if room.name.startswith("in") else "VECOUT"
    return [
        f"        TQue<TPosition::{place}, {room.depth}> {room.name};",
        f"        pipe.InitBuffer({room.name}, {room.depth}, static_cast<uint32_t>({size}));",
    ]
