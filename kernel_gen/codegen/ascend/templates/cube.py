"""Template "cube": one matrix product on the cube cores, anything around it on the vector cores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kernel_gen.codegen.ascend.cube.bias import BiasRow
from kernel_gen.codegen.ascend.cube.loads import can_load
from kernel_gen.codegen.ascend.cube.text import CubePhase, MatrixOperand
from kernel_gen.codegen.ascend.cube.tiling import Blocks
from kernel_gen.codegen.ascend.instructions.writer import UnfitError
from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan
from kernel_gen.codegen.ascend.kernel.planned import PlannedTemplate
from kernel_gen.codegen.ascend.kernel.sections import Sections, limits_of
from kernel_gen.codegen.ascend.moves.addresses import Addresses, Place
from kernel_gen.codegen.ascend.moves.memory import STORED
from kernel_gen.codegen.ascend.nest.product import split
from kernel_gen.codegen.ascend.nest.shape import shaped
from kernel_gen.codegen.ascend.nest.split_nest import SplitNest
from kernel_gen.codegen.ascend.templates.check import refuse_nest
from kernel_gen.codegen.ascend.templates.vector import LANES, places_of, starting_points
from kernel_gen.codegen.ascend.tiles.chunks import chunked
from kernel_gen.codegen.flat.linear import FlatNest, Linear, Poly, product
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.schedule.schedule import Choice, Parameter, Schedule, Space
from kernel_gen.schedule.words import choice

_BLOCKS = {
    "tileM": (0, 16, 32, 64, 96, 128, 192, 256),
    "tileN": (0, 32, 64, 96, 128, 208, 256, 320, 512),
    "stages": (0, 2, 3, 4, 5),
}
"""Sizes of a product's tiles in elements, and buffers in L1; 0: the tiling function decides."""
_BIAS = ("table", "vector")
"""Who adds a bias that the bias table takes: the cube unit, or the vector cores after it."""
_LONGEST_ROW = 65535  # elements from row to row of an operand, as the copy to fractals counts


@dataclass(frozen=True, slots=True)
class CubeTemplate(PlannedTemplate):
    """Matmul and batched matmul in fp16, bf16 or fp32 with any prologue and epilogue."""

    name: str = "cube"

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        if target.kind is DeviceKind.CPU:
            return Refusal("wrong-device", "template cube generates code for NPUs")
        parts = _split(nest, table=False)
        if isinstance(parts, Refusal):
            return parts
        for part in (parts.prologue, parts.epilogue):
            refused = refuse_nest(part) if part is not None else None
            if refused is not None:
                return refused
        made = _phase(parts, 0, Blocks())
        return made if isinstance(made, Refusal) else None

    def space(self, nest: LoopNest, target: Target) -> Space:
        refused = self.refuse(nest, target)
        if refused is not None:
            raise InvalidGraph(refused.sentence)
        cores = limits_of(target).cores
        parts = _split(nest, table=True)
        biased = isinstance(parts, SplitNest) and parts.bias is not None
        parameters = (
            Parameter("column", (0, 1)),
            Parameter("row", (0, 1)),
            Parameter("lanes", LANES),
            Parameter("buffers", (1, 2)),
            Parameter("cores", tuple(sorted({max(cores // 4, 1), max(cores // 2, 1), cores}))),
            Parameter("walk", ("whole", "steps")),
            *(Parameter(name, sizes) for name, sizes in _BLOCKS.items()),
            *([Parameter("bias", _BIAS)] if biased else []),
        )
        first: dict[str, Choice] = {
            "column": 0, "row": 0, "lanes": 0, "buffers": 2, "cores": cores, "walk": "whole",
            "tileM": 0, "tileN": 0, "stages": 0,
        }  # fmt: skip
        alone = isinstance(parts, SplitNest) and parts.prologue is None and parts.epilogue is None
        if not biased:
            return Space(parameters, starting_points(first)[: 1 if alone else 2])
        by_table, by_vector = ({**first, "bias": who} for who in _BIAS)
        seeds = starting_points(by_table)[: 1 if alone else 2]
        return Space(parameters, (*seeds, tuple(by_vector.items())))

    def planned(self, nest: LoopNest, schedule: Schedule, target: Target) -> KernelPlan:
        return _planned(nest, schedule, target)


@lru_cache(maxsize=256)
def _split(nest: LoopNest, *, table: bool) -> SplitNest | Refusal:
    return split(shaped(nest), table=table)


@lru_cache(maxsize=64)
def _planned(nest: LoopNest, schedule: Schedule, target: Target) -> KernelPlan:
    parts = _split(nest, table=_decided(schedule, "bias") == "table")
    if isinstance(parts, Refusal):
        raise InvalidGraph(parts.sentence)
    flat = parts.shape.nest
    sections = Sections(target, schedule)
    places = _places(parts)
    for number, buffer in enumerate(parts.buffers):
        if number >= len(flat.buffers):
            kind = buffer.type
            place = places[number]
            sections.reserve(place.name, place.ctype, product(kind.shape), kind.dtype.bytes)
    prologue, epilogue, in_chunks = _in_chunks(parts)
    if prologue is not None:
        sections.add(prologue, places)
    made = _phase(parts, len(sections.sections), _blocks(schedule))
    if isinstance(made, Refusal):
        raise UnfitError(made)
    sections.sections.append(made)
    if epilogue is not None:
        sections.add(epilogue, places)
    return KernelPlan(
        flat, flat.buffers, parts.shape.symbols(), parts.shape.derived,
        tuple(sections.sections), tuple(sections.work.values()), sections.workspace, in_chunks,
    )  # fmt: skip


def _in_chunks(parts: SplitNest) -> tuple[FlatNest | None, FlatNest | None, bool]:
    """Prologue and epilogue over a chunk of the product's rows where both allow it, so that vector
    and cube cores work side by side; else as they are."""
    m = parts.axes.m
    given = [n for n in (parts.prologue, parts.epilogue) if n is not None]
    made = [chunked(n, m) for n in given] if m and not parts.axes.batch else []
    if not given or not made or None in made:
        return parts.prologue, parts.epilogue, False
    first = made[0] if parts.prologue is not None else None
    return first, made[-1] if parts.epilogue is not None else None, True


def _places(parts: SplitNest) -> dict[int, Place]:
    """Global tensors: the nest's buffers, then those in the workspace."""
    places = places_of(parts.shape.nest)
    for number in range(len(places), len(parts.buffers)):
        places[number] = Place(f"between{number}", STORED[parts.buffers[number].type.dtype])
    return places


def _decided(schedule: Schedule, parameter: str) -> Choice | None:
    """None in schedules from before there was this parameter, or where a nest has none."""
    known = {str(dict(d.args).get("parameter")) for d in schedule.decisions}
    return choice(schedule, parameter) if parameter in known else None


def _blocks(schedule: Schedule) -> Blocks:
    return Blocks(*(int(str(_decided(schedule, p) or 0)) for p in _BLOCKS))


def _bias(parts: SplitNest, places: dict[int, Place]) -> BiasRow | None:
    if parts.bias is None:
        return None
    at = parts.bias.at
    batch = Linear(
        tuple((t, c) for t, c in at.terms if t != AxisTerm(parts.axes.n or "")), at.const
    )
    offset = Addresses(parts.shape.nest, places).offset(batch, {a: a for a in parts.axes.batch})
    size = parts.buffers[parts.bias.buffer].type.dtype.bytes
    return BiasRow(places[parts.bias.buffer], offset, size)


def _phase(parts: SplitNest, number: int, blocks: Blocks) -> CubePhase | Refusal:
    axes, nest = parts.axes, parts.shape.nest
    places = _places(parts)
    size = parts.buffers[parts.left].type.dtype.bytes
    lhs = _operand(parts, places, parts.left, parts.lhs, axes.m, axes.k)
    rhs = _operand(parts, places, parts.right, parts.rhs, axes.n, axes.k)
    out = _operand(parts, places, parts.out, parts.result, axes.m, axes.n)
    for operand in (lhs, rhs, out):
        if isinstance(operand, Refusal):
            return operand
    assert isinstance(lhs, MatrixOperand)
    assert isinstance(rhs, MatrixOperand)
    assert isinstance(out, MatrixOperand)
    if not out.k_contiguous:
        return Refusal("operand-layout", "the result is not contiguous along its columns")
    if not can_load(True, lhs.k_contiguous, size) or not can_load(False, rhs.k_contiguous, size):
        return Refusal("operand-layout", "fp32 is not transposed on its way to the cube unit")
    return CubePhase(
        number,
        tuple((a, nest.extent_text(a)) for a in axes.batch),
        nest.extent_text(axes.m) if axes.m else "1",
        nest.extent_text(axes.n) if axes.n else "1",
        nest.extent_text(axes.k),
        lhs,
        rhs,
        out,
        size,
        parts.relu,
        waits=parts.prologue is not None,
        right_early=parts.right < len(nest.buffers),
        signals=parts.epilogue is not None,
        blocks=blocks,
        bias=_bias(parts, places),
    )


def _operand(
    parts: SplitNest,
    places: dict[int, Place],
    buffer: int,
    at: Linear,
    outer: str | None,
    k: str | None,
) -> MatrixOperand | Refusal:
    """A matrix with rows along `outer` or along `k`."""
    batch = Linear(
        tuple(
            (t, c) for t, c in at.terms if not (isinstance(t, AxisTerm) and t.axis in (outer, k))
        ),
        at.const,
    )
    bound = {a: a for a in parts.axes.batch}
    if not batch.axes() <= set(bound):
        return Refusal("operand-layout", f"buffer {buffer} is not a matrix for each batch")
    offset = Addresses(parts.shape.nest, places).offset(batch, bound)
    across = at.coeff(k) if k else Poly.of(1)
    down = at.coeff(outer) if outer else Poly.of(0)
    extent = Poly.of(parts.shape.nest.extent(k)) if k else Poly.of(1)
    if across.const == 1:
        stride, contiguous = (down if down.terms else extent), True
    elif down.const == 1 or not down.terms:
        stride, contiguous = across, False
    else:
        return Refusal("operand-layout", f"buffer {buffer} has no contiguous axis")
    fits = stride.const is None or 0 < stride.const <= _LONGEST_ROW
    if not fits and buffer != parts.out:
        return Refusal("operand-layout", f"rows of buffer {buffer} are {stride.const} apart")
    return MatrixOperand(places[buffer], offset, stride, contiguous)
