"""From nests to the sections of a kernel: phases laid out for the vector cores; what they share.

A kernel is a list of sections, vector phases and at most one product for the cube cores. Each phase
is there whole and, where whole rows may not fit the unified buffer, walked in steps as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_gen.ascend.chips import Chip, load_chip
from kernel_gen.codegen.ascend.cube.text import CubePhase
from kernel_gen.codegen.ascend.instructions.layout import MOST_BUFFERS
from kernel_gen.codegen.ascend.instructions.scalar_work import ScalarRates
from kernel_gen.codegen.ascend.instructions.writer import HELD, UnfitError
from kernel_gen.codegen.ascend.kernel.kernel_plan import PhaseVariants, WorkTensor
from kernel_gen.codegen.ascend.kernel.vector_tiling import Limits
from kernel_gen.codegen.ascend.moves.addresses import Place
from kernel_gen.codegen.ascend.moves.memory import STORED
from kernel_gen.codegen.ascend.moves.stores import Shared
from kernel_gen.codegen.ascend.phases.phase import PhaseEmitter, PhaseText
from kernel_gen.codegen.ascend.phases.rooms import total_bytes
from kernel_gen.codegen.ascend.tiles.roles import (
    NO_COLUMN,
    Roles,
    can_be_whole,
    column_axes,
    phase_accesses,
    row_axes,
)
from kernel_gen.codegen.ascend.tiles.split_reduce import PART, SplitReduce, parts_bytes
from kernel_gen.codegen.flat.linear import FlatNest, FlatStore, Linear, Poly, product
from kernel_gen.codegen.flat.phases import Phase, plan_phases
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule
from kernel_gen.schedule.words import choice


def chip_of(target: Target) -> Chip:
    """The chip of an NPU target; `Target.model` is its name."""
    return load_chip(target.model)


def limits_of(target: Target) -> Limits:
    """What the tiling function knows of the chip."""
    chip = chip_of(target)
    cycles = chip.mhz * 1e6
    return Limits(
        chip.ub_usable_bytes,
        chip.vector_cores,
        chip.hbm_bytes_per_s / chip.vector_cores / cycles,
        chip.cube_cores,
        (
            chip.cube_cores * cycles / chip.hbm_bytes_per_s,
            chip.cube_cores * cycles / chip.l2_bytes_per_s,
            1 / chip.gm_cube_rate,
        ),
        ScalarRates(chip.scalar_gm_cycles, chip.scalar_read_cycles, chip.gm_read_start_cycles),
    )


def alignment(nest: FlatNest) -> int:
    """Lanes that rows are rounded up to: 32 B of the narrowest type on the way."""
    held = {STORED[b.type.dtype] for b in nest.buffers} | {HELD[s.dtype] for s in nest.statements}
    narrow = {"int8_t": 32, "uint8_t": 32, "half": 16, "bfloat16_t": 16, "int16_t": 16}
    return max([8, *(narrow[k] for k in held if k in narrow)])


@dataclass(slots=True)
class Sections:
    """Sections so far, and the workspace that they take."""

    target: Target
    schedule: Schedule
    sections: list[PhaseVariants | CubePhase] = field(default_factory=list)
    work: dict[str, WorkTensor] = field(default_factory=dict)
    workspace: Poly = field(default_factory=Poly)

    def reserve(self, name: str, ctype: str, elems: Poly, size: int) -> None:
        """A tensor of its own in the workspace."""
        self.work[name] = WorkTensor(name, ctype, self.workspace)
        self.workspace = self.workspace + elems * size + Poly.of(512)

    def add_split(self, parts: SplitReduce, places: Mapping[int, Place]) -> None:
        """A reduction in parts, and the sum of the parts."""
        known, cores = dict(places), limits_of(self.target).cores
        for number, buffer in enumerate(parts.partial.buffers[parts.first :], parts.first):
            place = Place(f"parts{number}", HELD[buffer.type.dtype])
            known[number] = place
            self.reserve(place.name, place.ctype, parts_bytes(buffer.type, cores), 1)
        self.add(parts.partial, known, (parts.phase,), synchronised=True)
        self.add(parts.final, known)

    def add(
        self,
        flat: FlatNest,
        places: Mapping[int, Place],
        phases: tuple[Phase, ...] | None = None,
        *,
        synchronised: bool = False,
    ) -> None:
        """The phases of a nest without products."""
        align = alignment(flat)
        unit = 128 if any(s.dtype is DType.BOOL for s in flat.statements) else 64
        phases = plan_phases(flat) if phases is None else phases
        prefix = f"work{len(self.sections)}_"
        shared = self._shared(flat, phases, prefix)
        limits = limits_of(self.target)
        for phase in phases:
            number = len(self.sections)
            variants: list[PhaseText] = []
            for roles in _roles(flat, phase, self.schedule):
                _refuse_strided(flat, roles)
                depth = int(str(choice(self.schedule, "buffers")))
                emitter = PhaseEmitter(flat, roles, places, shared, unit, depth)
                text = emitter.run("        ")
                if _may_fit(flat, text, limits, align, unit):
                    variants.append(text)
                    if _always_fits(flat, text, limits, align, unit):
                        break
            if not variants:
                raise UnfitError(
                    Refusal(
                        "tile-too-large",
                        f"phase {number} needs more than the unified buffer, or than 64 buffers",
                    )
                )
            self.sections.append(
                PhaseVariants(
                    number, tuple(variants), synchronised or bool(phase.shared), flat, align, unit
                )
            )

    def _shared(self, flat: FlatNest, phases: tuple[Phase, ...], prefix: str) -> dict[int, Shared]:
        """Places in the workspace for reductions that later phases read."""
        live = flat.statement_axes()
        found: dict[int, Shared] = {}
        for phase in phases:
            for r in phase.shared:
                roles = _roles(flat, phase, self.schedule)[0]
                last = [a for a in (roles.row, roles.col) if a is not None]
                axes = sorted(
                    (a for a in flat.axes if a.name in live[r]),
                    key=lambda a: last.index(a.name) + 1 if a.name in last else 0,
                )  # tiles are written along their columns, or else along their rows
                terms = [
                    (AxisTerm(a.name), product(x.extent for x in axes[k + 1 :]))
                    for k, a in enumerate(axes)
                ]
                ctype = HELD[flat.statements[r].dtype]
                name = f"{prefix}{r}"
                self.reserve(name, ctype, product(a.extent for a in axes), 4)
                found[r] = Shared(Place(name, ctype), Linear(tuple(terms)))
        return found


def _roles(flat: FlatNest, phase: Phase, schedule: Schedule) -> list[Roles]:
    """The ways to run a phase, best first."""
    columns = column_axes(flat, phase)
    col = columns[min(int(str(choice(schedule, "column"))), len(columns) - 1)]
    rows = row_axes(flat, phase, col)
    row = rows[min(int(str(choice(schedule, "row"))), len(rows) - 1)] if rows else None
    if not phase.inner:
        return [Roles(phase, col, row, True)]
    found = []
    if PART.name in phase.outer:
        row = next((a for a in rows if a != PART.name), None)
        return [Roles(phase, col, row, False)]
    if choice(schedule, "walk") == "whole" and can_be_whole(flat, phase, row, col):
        found.append(Roles(phase, col, row, True))
    found.append(Roles(phase, col, row, False))
    return found


def _refuse_strided(flat: FlatNest, roles: Roles) -> None:
    """Single elements are copied out in blocks, which exist for 2 and 4 bytes."""
    for access in phase_accesses(flat, roles.phase):
        alone = roles.row in access.at.axes() and roles.col not in access.at.axes()
        if isinstance(access, FlatStore) and alone and roles.row:
            size = flat.buffers[access.buffer].type.dtype.bytes
            if access.at.coeff(roles.row).const != 1 and size in (1, 8):
                raise UnfitError(
                    Refusal("store-strided", f"{size}-byte elements are written one by one")
                )


def _least(flat: FlatNest, text: PhaseText, default: int) -> tuple[int | None, int | None]:
    """The smallest tile of a phase; None where it depends on symbols."""
    roles = text.roles
    sizes: list[int | None] = []
    for axis, least in ((roles.row, 1), (roles.col, default)):
        if axis is None or axis == NO_COLUMN:
            sizes.append(1)
        elif roles.whole and axis in roles.phase.inner:
            extent = flat.extent(axis)
            sizes.append(extent if isinstance(extent, int) else None)
        else:
            extent = flat.extent(axis)
            sizes.append(min(least, max(extent, 1)) if isinstance(extent, int) else least)
    return sizes[0], sizes[1]


def _may_fit(flat: FlatNest, text: PhaseText, limits: Limits, align: int, unit: int) -> bool:
    height, width = _least(flat, text, unit)
    if height == 0 or width == 0 or (height or 1) > 2040:
        return False
    if text.layout.buffer_count > MOST_BUFFERS:
        return False
    rooms = text.layout.rooms()
    return total_bytes(rooms, height or 1, width or unit, align, unit) <= limits.ub_bytes


def _always_fits(flat: FlatNest, text: PhaseText, limits: Limits, align: int, unit: int) -> bool:
    return None not in _least(flat, text, unit) and _may_fit(flat, text, limits, align, unit)
