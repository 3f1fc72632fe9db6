"""Which kernels of a segment one team of threads runs, and where its threads wait for each other.

Starting a team and ending it costs about as much as two barriers and the team's own bookkeeping,
which is more than many a small kernel takes. So the kernels between the first and the last one of
a segment that want a team share one: its threads meet at a barrier between two kernels, and not
even there where neither of them touches what the other writes. A kernel for one thread runs on the
first one, in its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kernel_gen.runtime.layout import kernel_reads, kernel_writes
from kernel_gen.runtime.plan import Kernel, Layout

_LONGEST_RUN = 64  # kernels without a barrier, each compared with all before it


@dataclass(frozen=True, slots=True)
class Turn:
    """A kernel by position; with `waits`, the team's threads meet before it."""

    kernel: int
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Kernels that run one after another: by a team, or (then it is one kernel) by the caller."""

    turns: tuple[Turn, ...]
    team: bool


class _Space(IntEnum):
    """What memory is known by: bytes of the arena, results of their own, all else as one."""

    ARENA, OWN, GIVEN = range(3)


@dataclass(frozen=True, slots=True)
class _Range:
    space: _Space
    low: int
    high: int

    def meets(self, other: _Range) -> bool:
        return self.space == other.space and self.low < other.high and other.low < self.high


@dataclass(frozen=True, slots=True)
class _Access:
    """What a kernel touches. `first` if only the first thread of a team does."""

    reads: tuple[_Range, ...]
    writes: tuple[_Range, ...]
    scratch: tuple[int, int]  # shared bytes, then bytes of each thread's own
    first: bool

    def follows(self, before: _Access) -> bool:
        """Whether some thread may touch what another one has written, or write what it reads."""
        if self.first and before.first:
            return False
        return (
            _meet(self.writes, (*before.reads, *before.writes))
            or _meet(self.reads, before.writes)
            or self._shares_scratch(before)
        )

    def _shares_scratch(self, before: _Access) -> bool:
        """Whether a thread's scratch may be another's: equal ones are apart, but for shared
        bytes."""
        used = sum(self.scratch) and sum(before.scratch)
        return bool(used) and (self.scratch != before.scratch or bool(self.scratch[0]))


def _meet(some: Iterable[_Range], others: Sequence[_Range]) -> bool:
    return any(a.meets(b) for a in some for b in others)


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the values of a plan are, as far as two of them may share memory.

    Results have memory of their own, unless they are written over an input; what the caller or
    torch brings may be views of each other.
    """

    arena: dict[int, tuple[int, int]]
    own: frozenset[int]

    @staticmethod
    def of(layout: Layout) -> Memory:
        slots = {slot.value: (slot.offset, slot.offset + slot.nbytes) for slot in layout.arena}
        overwriting = {value for value, _ in layout.overwrites}
        return Memory(slots, frozenset(layout.buffers) - overwriting)

    def access(self, kernel: Kernel) -> _Access:
        source = kernel.source
        return _Access(
            tuple(self._range(value) for value in kernel_reads(kernel)),
            tuple(self._range(value) for value in kernel_writes(kernel)),
            (source.shared_bytes, source.scratch_bytes),
            source.team is None,
        )

    def _range(self, value: int) -> _Range:
        if value in self.arena:
            return _Range(_Space.ARENA, *self.arena[value])
        if value in self.own:
            return _Range(_Space.OWN, value, value + 1)
        return _Range(_Space.GIVEN, 0, 1)


def regions(
    kernels: Sequence[Kernel], positions: Sequence[int], memory: Memory
) -> tuple[Region, ...]:
    """The kernels at `positions` in their order, cut into regions: at most one has a team."""
    wanting = [i for i, kernel in enumerate(positions) if kernels[kernel].source.team is not None]
    if not wanting:
        return tuple(Region((Turn(kernel),), team=False) for kernel in positions)
    first, end = wanting[0], wanting[-1] + 1
    alone = [Region((Turn(kernel),), team=False) for kernel in positions]
    shared = Region(_turns(kernels, positions[first:end], memory), team=True)
    return (*alone[:first], shared, *alone[end:])


def _turns(kernels: Sequence[Kernel], positions: Sequence[int], memory: Memory) -> tuple[Turn, ...]:
    found: list[Turn] = []
    since: list[_Access] = []  # of the kernels since the last barrier
    for kernel in positions:
        access = memory.access(kernels[kernel])
        waits = len(since) >= _LONGEST_RUN or any(access.follows(before) for before in since)
        if waits:
            since.clear()
        since.append(access)
        found.append(Turn(kernel, waits))
    return tuple(found)
