"""The arena: one block of memory for all intermediate values, planned by their lifetimes.

Values whose lifetimes do not overlap share bytes. Placement is greedy by size: the largest value
first, each at the tightest gap that its time leaves free (the usual heuristic for offline dynamic
storage allocation, an NP-hard problem).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kernel_gen.ir.types import TensorType, static_shape
from kernel_gen.runtime.plan import ArenaSlot

ALIGN_BYTES = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value of `nbytes` written in step `first` and read for the last time in step `last`.

    It may not share bytes with another that one of its own steps reads or writes."""

    value: int
    nbytes: int
    first: int
    last: int


def align(nbytes: int) -> int:
    """`nbytes` rounded up to the alignment of all addresses in the arena."""
    return -(-nbytes // ALIGN_BYTES) * ALIGN_BYTES


def storage_bytes(type_: TensorType) -> int:
    """Bytes from the first to the last element, strides honoured (static types)."""
    shape = static_shape(type_.shape)
    if 0 in shape:
        return 0
    pairs = zip(shape, type_.element_strides, strict=True)
    last = sum((extent - 1) * stride for extent, stride in pairs)
    return (last + 1) * type_.dtype.bytes


def place(lifetimes: Iterable[Lifetime]) -> tuple[tuple[ArenaSlot, ...], int]:
    """Slots in ascending order of value, and the size of the arena in bytes."""
    lives = sorted(lifetimes, key=lambda item: (-item.nbytes, item.first, item.value))
    first = np.array([life.first for life in lives])
    last = np.array([life.last for life in lives])
    placed: list[ArenaSlot] = []
    for count, life in enumerate(lives):
        meets = (first[:count] <= life.last) & (last[:count] >= life.first)
        taken = [placed[i] for i in np.flatnonzero(meets)]
        placed.append(ArenaSlot(life.value, _best_fit(taken, align(life.nbytes)), life.nbytes))
    slots = tuple(sorted(placed, key=lambda slot: slot.value))
    return slots, max((slot.offset + align(slot.nbytes) for slot in slots), default=0)


def _best_fit(taken: Iterable[ArenaSlot], size: int) -> int:
    """Offset of the smallest free gap of at least `size` bytes, else the end of all taken."""
    best: tuple[int, int] | None = None  # gap's size, its offset
    end = 0
    for slot in sorted(taken, key=lambda slot: slot.offset):
        gap = slot.offset - end
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, end)
        end = max(end, slot.offset + align(slot.nbytes))
    return best[1] if best else end
