"""How much of the unified buffer a phase needs, for the generator and as text for kernel and tiling
function: one formula, evaluated in three places."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.codegen.ascend.layout import Room
from kernel_gen.codegen.ascend.steps import Lanes

_LANES = {
    Lanes.FULL: "tileLanes",
    Lanes.COL: "tileCols",
    Lanes.ROW: "tileRows",
    Lanes.WIDE: "tileHeight * 64",
    Lanes.CROSS: "tileCross",
    Lanes.HALF: "UpTo(pitch / 2, 64)",
}


def up(value: int, step: int) -> int:
    """`value` rounded up to a multiple of `step`."""
    return -(-value // step) * step


def bytes_text(room: Room, unit_lanes: int) -> str:
    """C++ text of the bytes of one buffer of a room, a multiple of 32."""
    if room.lanes is Lanes.BLOCKS:
        return "UpTo(tileHeight, 8) * 32"
    if room.lanes is Lanes.BLOCK:
        return "256"
    lanes = _LANES.get(room.lanes, str(unit_lanes))
    return f"UpTo({lanes} / 8, 32)" if room.size == 0 else f"{lanes} * {room.size}"


def room_bytes(room: Room, height: int, width: int, align: int, unit_lanes: int) -> int:
    """Bytes of one buffer of a room for a tile of `height` x `width` elements."""
    pitch = up(width, align)
    lanes = {
        Lanes.FULL: up(height * pitch, unit_lanes),
        Lanes.COL: up(pitch, unit_lanes),
        Lanes.ROW: up(height, unit_lanes),
        Lanes.WIDE: height * 64,
        Lanes.HALF: up(pitch // 2, 64),
        Lanes.CROSS: up(pitch * up(height, 16), unit_lanes),
    }.get(room.lanes, unit_lanes)
    if room.lanes is Lanes.BLOCKS:
        return up(height, 8) * 32
    if room.lanes is Lanes.BLOCK:
        return 256
    return up(lanes // 8, 32) if room.size == 0 else lanes * room.size


def total_bytes(rooms: Sequence[Room], height: int, width: int, align: int, unit_lanes: int) -> int:
    """Bytes of all rooms of a phase."""
    return sum(room.depth * room_bytes(room, height, width, align, unit_lanes) for room in rooms)


def total_text(rooms: Sequence[Room], unit_lanes: int) -> str:
    """C++ text of `total_bytes`, with terms of one kind gathered."""
    found: dict[str, int] = {}
    for room in rooms:
        text = bytes_text(room, unit_lanes)
        head, _, tail = text.rpartition(" * ")
        if head and tail.isdigit():
            found[head] = found.get(head, 0) + int(tail) * room.depth
        elif text.isdigit():
            found["1"] = found.get("1", 0) + int(text) * room.depth
        else:
            found[text] = found.get(text, 0) + room.depth
    terms = [f"{n}" if t == "1" else (t if n == 1 else f"{t} * {n}") for t, n in found.items()]
    return " + ".join(terms) or "0"
