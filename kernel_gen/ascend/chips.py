"""Ascend chips: what they hold and what their instructions cost, from `chips/*.toml`.

Every number in those files stands beside its source, or the word "estimate". A file may extend
another and give only what differs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernel_gen.errors import InternalError, InvalidInput

_FOLDER = Path(__file__).parent / "chips"


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """Cycles of a vector instruction: `repeat` for each 256 B, `fixed` once."""

    repeat: float
    fixed: float


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. Sizes in bytes per core, `*_cycles` in cycles of `mhz`, rates in bytes per cycle
    of one core; `hbm_bytes_per_s` and `l2_bytes_per_s` are shared by all cores.

    `estimated` chips have no published measurements behind their costs. `sources` says where each
    number comes from, by field name or instruction.
    """

    name: str
    estimated: bool
    cube_cores: int
    vector_cores: int
    mhz: float
    ub_bytes: int
    ub_reserved_bytes: int
    l1_bytes: int
    l0a_bytes: int
    l0b_bytes: int
    l0c_bytes: int
    bt_bytes: int
    fb_bytes: int
    l2_bytes: int
    hbm_bytes_per_s: float
    l2_bytes_per_s: float
    launch_us: float
    block_start_cycles: float
    issue_cycles: float
    scalar_read_cycles: float
    scalar_write_cycles: float
    scalar_gm_cycles: float
    event_cycles: float
    barrier_cycles: float
    queue_cycles: float
    core_flag_cycles: float
    sync_all_cycles: float
    vector_start_cycles: float
    bank_read_read_cycles: float
    bank_read_write_cycles: float
    gm_read_start_cycles: float
    gm_write_start_cycles: float
    gm_read_rate: float
    gm_write_rate: float
    gm_cube_rate: float
    gm_burst_bytes: float
    gm_sector_bytes: int
    copy_issue_cycles: float
    ub_copy_rate: float
    ub_copy_start_cycles: float
    l0a_rate: float
    l0a_start_cycles: float
    l0b_rate: float
    l0b_start_cycles: float
    bt_rate: float
    bt_start_cycles: float
    fix_elements_per_cycle: float
    fix_start_cycles: float
    mmad_start_cycles: float
    instructions: Mapping[str, InstructionCost]
    sources: Mapping[str, str]

    @property
    def ub_usable_bytes(self) -> int:
        """What a kernel may allocate in UB."""
        return self.ub_bytes - self.ub_reserved_bytes

    @property
    def hbm_bytes_per_cycle(self) -> float:
        """HBM bandwidth of all cores together."""
        return self.hbm_bytes_per_s / (self.mhz * 1e6)

    @property
    def l2_bytes_per_cycle(self) -> float:
        """L2 bandwidth of all cores together."""
        return self.l2_bytes_per_s / (self.mhz * 1e6)

    def microseconds(self, cycles: float) -> float:
        return cycles / self.mhz

    def __reduce__(self) -> tuple[Any, ...]:
        return load_chip, (self.name,)


def chip_names() -> tuple[str, ...]:
    """The chips that are described here, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def load_chip(name: str) -> Chip:
    """The chip `name` ("910b3"). Raises InvalidInput for a chip that is not described."""
    if name not in chip_names():
        raise InvalidInput(f"unknown Ascend chip {name!r}: known are {', '.join(chip_names())}")
    return _chip(name, _tables(name))


def _tables(name: str) -> dict[str, dict[str, Any]]:
    """The file of a chip over the files that it extends."""
    own: dict[str, Any] = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    base = own.pop("extends", None)
    estimated = own.pop("estimated", False)
    merged = _tables(base) if base else {"chip": {}, "instructions": {}}
    for table, entries in own.items():
        merged[table] |= entries
    merged["meta"] = {"estimated": estimated}
    return merged


def _chip(name: str, tables: Mapping[str, Mapping[str, Any]]) -> Chip:
    values: dict[str, Any] = {"name": name, "estimated": tables["meta"]["estimated"]}
    sources: dict[str, str] = {}
    for key, entry in tables["chip"].items():
        values[key], sources[key] = _sourced(name, key, entry, 1)[0], entry[-1]
    costs: dict[str, InstructionCost] = {}
    for key, entry in tables["instructions"].items():
        repeat, fixed = _sourced(name, key, entry, 2)
        costs[key], sources[key] = InstructionCost(repeat, fixed), entry[-1]
    values |= {"instructions": MappingProxyType(costs), "sources": MappingProxyType(sources)}
    wanted = {field.name for field in fields(Chip)}
    if wanted != values.keys():
        raise InternalError(
            f"chips/{name}.toml: {sorted(wanted ^ values.keys())} missing or unknown"
        )
    return Chip(**values)


def _sourced(name: str, key: str, entry: Any, numbers: int) -> list[Any]:
    """The numbers of `[number…, "source"]`."""
    if not isinstance(entry, list) or len(entry) != numbers + 1 or not entry[-1]:
        raise InternalError(f"chips/{name}.toml: {key} needs {numbers} number(s) and a source")
    if any(isinstance(n, bool) or not isinstance(n, int | float) or n < 0 for n in entry[:-1]):
        raise InternalError(f"chips/{name}.toml: {key} has {entry[:-1]}")
    return list(entry[:-1])
