"""Vector templates: any nest without matrix products, as tiles in the unified buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from kernel_gen.ascend.chips import Chip, load_chip
from kernel_gen.codegen.ascend.check import refuse_nest
from kernel_gen.codegen.ascend.kernel_text import PhaseVariants, kernel_text
from kernel_gen.codegen.ascend.phase import PhaseEmitter, PhaseText, Shared
from kernel_gen.codegen.ascend.roles import (
    NO_COLUMN,
    Roles,
    can_be_whole,
    column_axes,
    phase_accesses,
    row_axes,
)
from kernel_gen.codegen.ascend.rooms import total_bytes
from kernel_gen.codegen.ascend.shape import Shaped, shaped
from kernel_gen.codegen.ascend.tiling_text import (
    Limits,
    TunedPoint,
    launcher_text,
    struct_text,
    tiling_text,
)
from kernel_gen.codegen.ascend.memory import Place, STORED
from kernel_gen.codegen.ascend.kernel_text import buffer_names
from kernel_gen.codegen.ascend.writer import HELD
from kernel_gen.codegen.cpu.linear import FlatNest, FlatStore, Linear, Poly, product
from kernel_gen.codegen.cpu.phases import Phase, plan_phases
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.loopnest import Contract, LoopNest, Reduce
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.schedule.schedule import Choice, Decision, Parameter, Point, Schedule, Space
from kernel_gen.schedule.words import choice, decisions

_LANES = (
    0,
    512,
    1024,
    2048,
    4096,
    8192,
    16384,
)  # of a tile at most; 0: the tiling function decides


@dataclass(frozen=True, slots=True)
class VectorTemplate:
    """Tiles of rows and columns, tasks shared by the vector cores.

    "elementwise" takes nests without reductions; "reduce" those with them: whole rows where they
    fit the buffer, else walked in steps, several phases where reductions run over different axes.
    """

    name: str
    reduces: bool

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        if target.kind is DeviceKind.CPU:
            return Refusal("wrong-device", f"template {self.name} generates code for NPUs")
        if any(isinstance(s, Contract) for s in nest.statements):
            return Refusal("has-contraction", "the nest holds a matrix product")
        if self.reduces != any(isinstance(s, Reduce) for s in nest.statements):
            return (
                Refusal("no-reduction", "the nest reduces nothing")
                if self.reduces
                else Refusal("not-pointwise", "the nest reduces")
            )
        return refuse_nest(_prepared(nest).nest)

    def space(self, nest: LoopNest, target: Target) -> Space:
        refused = self.refuse(nest, target)
        if refused is not None:
            raise InvalidGraph(refused.sentence)
        cores = _limits(target).cores
        shape = _prepared(nest)
        phases = plan_phases(shape.nest)
        columns = max(len(column_axes(shape.nest, p)) for p in phases)
        rows = max(len(p.outer) + len(p.inner) for p in phases) - 1
        few = sorted({1, max(cores // 4, 1), max(cores // 2, 1), cores})
        parameters = [
            Parameter("column", tuple(range(max(min(columns, 2), 1)))),
            Parameter("row", tuple(range(max(min(rows, 3), 1)))),
            Parameter("lanes", _LANES),
            Parameter("buffers", (1, 2)),
            Parameter("cores", tuple(few)),
        ]
        if self.reduces:
            parameters.append(Parameter("walk", ("whole", "steps")))
        first: dict[str, Choice] = {
            "column": 0, "row": 0, "lanes": 0, "buffers": 2, "cores": cores,
        }  # fmt: skip
        if self.reduces:
            first["walk"] = "whole"
        return Space(tuple(parameters), (tuple(first.items()),))

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        schedule = Schedule(self.name, decisions(point))
        try:
            _emitted(nest, schedule, target)
        except _UnfitError as unfit:
            return unfit.refusal
        return schedule

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        try:
            made = _emitted(nest, schedule, target)
        except _UnfitError as unfit:
            raise InvalidGraph(unfit.refusal.sentence) from unfit
        limits = replace(_limits(target), cores=int(str(choice(schedule, "cores"))))
        symbols = (*made.shape.symbols(), *made.shape.derived)
        kernel = kernel_text(
            made.shape.nest, self.name, symbol, made.phases, symbols,
            align=made.align, unit_lanes=made.unit_lanes, work=made.work,
        )  # fmt: skip
        tiling = tiling_text(
            symbol, made.shape.nest, made.shape.symbols(), made.shape.derived, made.phases, limits,
            tuned_points(schedule), align=made.align, unit_lanes=made.unit_lanes,
            workspace=made.workspace,
        )  # fmt: skip
        files = (
            (f"{symbol}.cpp", kernel),
            (f"{symbol}_tiling.h", struct_text(symbol, symbols, made.phases)),
            (f"{symbol}_tiling.cpp", tiling),
            (f"{symbol}_launch.cpp", launcher_text(symbol, made.shape.nest.buffers)),
        )
        return KernelSource(symbol, files)


def tuned_points(schedule: Schedule) -> tuple[TunedPoint, ...]:
    """The tuned points that a schedule carries; its own `lanes` and `cores` where it has none."""
    found = []
    for decision in schedule.find("tuned"):
        args = dict(decision.args)
        dims = args["dims"]
        assert isinstance(dims, tuple)
        found.append(
            TunedPoint(
                tuple(int(str(d)) for d in dims), int(str(args["lanes"])), int(str(args["cores"]))
            )
        )
    return tuple(found)


def with_tuned(schedule: Schedule, points: tuple[TunedPoint, ...]) -> Schedule:
    """The schedule with tuned points for its tiling function's table."""
    from kernel_gen.ir.graph import attrs

    added = tuple(
        Decision("tuned", attrs(dims=p.dims, lanes=p.lanes, cores=p.cores)) for p in points
    )
    kept = tuple(d for d in schedule.decisions if d.kind != "tuned")
    return Schedule(schedule.template, kept + added)


class _UnfitError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.sentence)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class _Made:
    shape: Shaped
    phases: tuple[PhaseVariants, ...]
    align: int
    unit_lanes: int
    work: Mapping[str, str]
    workspace: Poly


@lru_cache(maxsize=256)
def _prepared(nest: LoopNest) -> Shaped:
    return shaped(nest)


def chip_of(target: Target) -> Chip:
    """The chip of an NPU target; `Target.model` is its name."""
    return load_chip(target.model)


def _limits(target: Target) -> Limits:
    chip = chip_of(target)
    cycles = chip.mhz * 1e6
    return Limits(
        chip.ub_usable_bytes,
        chip.vector_cores,
        chip.hbm_bytes_per_s / chip.vector_cores / cycles,
    )


def alignment(nest: FlatNest) -> int:
    """Lanes that rows are rounded up to: 32 B of the narrowest type on the way."""
    held = {STORED[b.type.dtype] for b in nest.buffers} | {HELD[s.dtype] for s in nest.statements}
    narrow = {"int8_t": 32, "uint8_t": 32, "half": 16, "bfloat16_t": 16, "int16_t": 16}
    return max([8, *(narrow[k] for k in held if k in narrow)])


@lru_cache(maxsize=64)
def _emitted(nest: LoopNest, schedule: Schedule, target: Target) -> _Made:
    """All phases as text."""
    shape = _prepared(nest)
    flat = shape.nest
    align = alignment(flat)
    unit = 128 if any(s.dtype is DType.BOOL for s in flat.statements) else 64
    phases = plan_phases(flat)
    shared, workspace = _shared(flat, phases)
    places = {
        i: Place(name, STORED[b.type.dtype])
        for i, (name, b) in enumerate(zip(buffer_names(flat.buffers), flat.buffers, strict=True))
    }
    limits = _limits(target)
    made: list[PhaseVariants] = []
    for number, phase in enumerate(phases):
        variants: list[PhaseText] = []
        for roles in _roles(flat, phase, schedule):
            _refuse_strided(flat, roles)
            depth = int(str(choice(schedule, "buffers")))
            emitter = PhaseEmitter(flat, roles, places, shared, unit, depth)
            text = emitter.run("        ")
            if _may_fit(flat, text, limits, align, unit):
                variants.append(text)
                if _always_fits(flat, text, limits, align, unit):
                    break
        if not variants:
            raise _UnfitError(
                Refusal("tile-too-large", f"phase {number} needs more than the unified buffer")
            )
        made.append(PhaseVariants(number, tuple(variants), bool(phase.shared)))
    work = {
        f"work_{HELD[flat.statements[r].dtype].removesuffix('_t')}": HELD[flat.statements[r].dtype]
        for r in shared
    }
    return _Made(shape, tuple(made), align, unit, work, workspace)


def _roles(flat: FlatNest, phase: Phase, schedule: Schedule) -> list[Roles]:
    """The ways to run a phase, best first."""
    columns = column_axes(flat, phase)
    col = columns[min(int(str(choice(schedule, "column"))), len(columns) - 1)]
    rows = row_axes(flat, phase, col)
    row = rows[min(int(str(choice(schedule, "row"))), len(rows) - 1)] if rows else None
    if not phase.inner:
        return [Roles(phase, col, row, True)]
    found = []
    if choice(schedule, "walk") == "whole" and can_be_whole(flat, phase, row, col):
        found.append(Roles(phase, col, row, True))
    found.append(Roles(phase, col, row, False))
    return found


def _refuse_strided(flat: FlatNest, roles: Roles) -> None:
    """Single elements are copied out in blocks, which exist for 2 and 4 bytes."""
    for access in phase_accesses(flat, roles.phase):
        if isinstance(access, FlatStore) and roles.col not in access.at.axes() and roles.row:
            size = flat.buffers[access.buffer].type.dtype.bytes
            if access.at.coeff(roles.row).const != 1 and size in (1, 8):
                raise _UnfitError(
                    Refusal("store-strided", f"{size}-byte elements are written one by one")
                )


def _least(flat: FlatNest, text: PhaseText, default: int) -> tuple[int | None, int | None]:
    """The smallest tile of a phase; None where it depends on symbols."""
    roles = text.roles
    sizes: list[int | None] = []
    for axis, least in ((roles.row, 1), (roles.col, default)):
        if axis is None:
            sizes.append(1)
        elif axis == NO_COLUMN:
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
    rooms = text.layout.rooms()
    return total_bytes(rooms, height or 1, width or unit, align, unit) <= limits.ub_bytes


def _always_fits(flat: FlatNest, text: PhaseText, limits: Limits, align: int, unit: int) -> bool:
    return None not in _least(flat, text, unit) and _may_fit(flat, text, limits, align, unit)


def _shared(flat: FlatNest, phases: tuple[Phase, ...]) -> tuple[dict[int, Shared], Poly]:
    """Places in the workspace for reductions that later phases read, and its size in bytes."""
    live = flat.statement_axes()
    base = Poly()
    found: dict[int, Shared] = {}
    for phase in phases:
        for r in phase.shared:
            axes = [a for a in flat.axes if a.name in live[r]]
            terms = [
                (AxisTerm(a.name), product(x.extent for x in axes[k + 1 :]))
                for k, a in enumerate(axes)
            ]
            found[r] = Shared(base, Linear(tuple(terms)))
            base = base + product(a.extent for a in axes) + Poly.of(8)
    return found, base * 4
