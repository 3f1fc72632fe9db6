"""How much of the unified buffer a phase needs, for the generator and as text for kernel and tiling
function: one formula, evaluated in three places."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.codegen.ascend.instructions.banks import HALF_BYTES, SET_BYTES
from kernel_gen.codegen.ascend.instructions.layout import GAP, Room
from kernel_gen.codegen.ascend.instructions.steps import SPACED, Lanes

_LANES = {
    Lanes.FULL: "tileLanes",
    Lanes.COL: "tileCols",
    Lanes.ROW: "tileRows",
    Lanes.WIDE: "tileHeight * 64",
    Lanes.CROSS: "tileCross",
    Lanes.HALF: "UpTo(tileLanes / 2, 64)",
    **{lanes: f"tileLanes * {apart}" for apart, lanes in SPACED.items()},
}


def up(value: int, step: int) -> int:
    """`value` rounded up to a multiple of `step`."""
    return -(-value // step) * step


def bytes_text(room: Room, unit_lanes: int) -> str:
    """C++ text of the bytes of one buffer of a room, a whole number of sets of bank groups."""
    if room is GAP:
        return str(HALF_BYTES)
    if room.lanes is Lanes.BLOCKS:
        return f"UpTo(UpTo(tileHeight, 8) * 32, {SET_BYTES})"
    if room.lanes is Lanes.BLOCK:
        return str(SET_BYTES)
    lanes = _LANES.get(room.lanes, str(unit_lanes))
    exact = f"{lanes} / 8" if room.size == 0 else f"{lanes} * {room.size}"
    return f"UpTo({exact}, {SET_BYTES})"


def room_bytes(room: Room, height: int, width: int, align: int, unit_lanes: int) -> int:
    """Bytes of one buffer of a room for a tile of `height` x `width` elements."""
    if room is GAP:
        return HALF_BYTES
    pitch = up(width, align)
    lanes = {
        Lanes.FULL: up(height * pitch, unit_lanes),
        Lanes.COL: up(pitch, unit_lanes),
        Lanes.ROW: up(height, unit_lanes),
        Lanes.WIDE: height * 64,
        Lanes.HALF: up(up(height * pitch, unit_lanes) // 2, 64),
        Lanes.CROSS: up(pitch * up(height, 16), unit_lanes),
        **{lanes: up(height * pitch, unit_lanes) * apart for apart, lanes in SPACED.items()},
    }.get(room.lanes, unit_lanes)
    if room.lanes is Lanes.BLOCKS:
        return up(up(height, 8) * 32, SET_BYTES)
    if room.lanes is Lanes.BLOCK:
        return SET_BYTES
    return up(lanes // 8 if room.size == 0 else lanes * room.size, SET_BYTES)


def total_bytes(rooms: Sequence[Room], height: int, width: int, align: int, unit_lanes: int) -> int:
    """Bytes of all rooms of a phase."""
    return sum(room.depth * room_bytes(room, height, width, align, unit_lanes) for room in rooms)


def total_text(rooms: Sequence[Room], unit_lanes: int) -> str:
    """C++ text of `total_bytes`, with terms of one kind gathered."""
    found: dict[str, int] = {}
    for room in rooms:
        text = bytes_text(room, unit_lanes)
        term, times = ("1", int(text)) if text.isdigit() else (text, 1)
        found[term] = found.get(term, 0) + times * room.depth
    terms = [f"{n}" if t == "1" else (t if n == 1 else f"{t} * {n}") for t, n in found.items()]
    return " + ".join(terms) or "0"
