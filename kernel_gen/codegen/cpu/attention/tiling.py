"""The decisions of one attention kernel, as the schedule tells them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernel_gen.codegen.cpu.attention.problem import Problem
from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.graph import attrs
from kernel_gen.schedule.schedule import Decision, Schedule
from kernel_gen.schedule.words import number, word

NAME = "attention"
_NEXT = "next"
_THREADS = {False: "one", True: "all"}


class Operand(StrEnum):
    """How keys and values are read: packed when a head begins, as they are multiplied or as pairs
    of bf16; in place; or in place with vectors along the depth (`DOT`, keys for few rows)."""

    PACK = "pack"
    PAIRS = "pairs"
    PLACE = "place"
    DOT = "dot"


@dataclass(frozen=True, slots=True)
class Tiling:
    """Register tiles of MR rows × (NV vectors) for both products; blocks of `rows` query rows and
    `keys` keys, multiples of the tile. With `splits` > 1 so many threads share the keys of one
    block of rows, and merge their results. `lanes` are elements of a vector."""

    lanes: int
    mr: int
    nv: int
    rows: int
    keys: int
    key: Operand
    value: Operand
    splits: int = 1
    team: bool = True
    ahead: bool = False  # whether queries and packed keys are fetched before they are read

    @property
    def nr(self) -> int:
        """Keys, or columns of the values, of a register tile."""
        return self.lanes * self.nv

    def blocks(self, problem: Problem) -> int:
        """Blocks of rows of one head."""
        return -(-problem.m // self.rows)

    def padded(self, elems: int) -> int:
        """Row stride in scratch: whole vectors, and no multiple of 512 elements' worth of sets."""
        stride = -(-elems // self.lanes) * self.lanes
        return stride + self.lanes if stride % 64 == 0 else stride

    def tail_nv(self, problem: Problem) -> int:
        """Vectors of the last tile of the values' columns; `nv` if it is full."""
        rest = problem.e % self.nr
        return -(-rest // self.lanes) if rest else self.nv

    def depth(self, problem: Problem) -> int:
        """Elements along the depth of packed queries and keys."""
        return -(-problem.d // 2) if self.key is Operand.PAIRS else problem.d

    def along_keys(self, keys: int) -> int:
        """Elements along so many keys of packed values."""
        return -(-keys // 2) if self.value is Operand.PAIRS else keys

    def panels(self, problem: Problem) -> int:
        """Packed key panels of one head."""
        return -(-problem.t // self.nr)


def to_schedule(tiling: Tiling) -> Schedule:
    """The tiling as replayable decisions."""
    return Schedule(
        NAME,
        (
            Decision("tile", attrs(rows=tiling.mr, vectors=tiling.nv)),
            Decision("block", attrs(rows=tiling.rows, keys=tiling.keys)),
            Decision("pack", attrs(key=str(tiling.key), value=str(tiling.value))),
            Decision("parallel", attrs(splits=tiling.splits, threads=_THREADS[tiling.team])),
            *((Decision("prefetch", attrs(operands=_NEXT)),) if tiling.ahead else ()),
        ),
    )


def from_schedule(schedule: Schedule, lanes: int) -> Tiling:
    """Inverse of `to_schedule`; raises InvalidGraph if a decision is missing."""
    if schedule.template != NAME:
        raise InvalidGraph(f"a schedule of {schedule.template}, not of {NAME}")
    return Tiling(
        lanes=lanes,
        mr=number(schedule, "tile", "rows"),
        nv=number(schedule, "tile", "vectors"),
        rows=number(schedule, "block", "rows"),
        keys=number(schedule, "block", "keys"),
        key=Operand(word(schedule, "pack", "key")),
        value=Operand(word(schedule, "pack", "value")),
        splits=number(schedule, "parallel", "splits"),
        team=word(schedule, "parallel", "threads") == _THREADS[True],
        ahead=bool(schedule.find("prefetch")),
    )
