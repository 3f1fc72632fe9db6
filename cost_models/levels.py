"""How fast a thread is served by the level of the memory that holds its bytes."""

from __future__ import annotations

from cost_models.machine import Machine
from kernel_gen.ir.target import Target

USABLE = 0.75
"""Share of a cache that holds what is read again: the rest holds other things."""
STREAMED = 0.4
"""Time of a store past the caches, of a plain one's beyond them: it spares its line's read (copies
of 41 GB/s, see `Machine`, moved 55 to 61)."""
_ONE_CORE = 0.6  # estimate: of the memory's rate that one core alone draws


def l3_gb_s(machine: Machine, target: Target) -> float:
    """Of one thread, from the cache that all cores share: its rate is that of all together."""
    return machine.l3_gb_s / target.cores


def memory_gb_s(machine: Machine, busy: int) -> float:
    """Of one of `busy` threads, from memory."""
    return machine.memory_gb_s * min(1 / busy, _ONE_CORE)


def held_gb_s(footprint_bytes: float, target: Target, machine: Machine, busy: int) -> float:
    """Of one of `busy` threads that share what they touch evenly and come back to it."""
    if footprint_bytes <= USABLE * target.l2_bytes * busy:
        return machine.l2_gb_s_core
    if footprint_bytes <= USABLE * target.l3_bytes:
        return l3_gb_s(machine, target)
    return memory_gb_s(machine, busy)
