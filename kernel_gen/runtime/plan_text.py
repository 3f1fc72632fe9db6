"""plan.json: a plan as canonical JSON, and its content id.

Sources are part of the text, objects are named by their digest. Kernels of equal groups (the layers
of a transformer) share nest, schedule and source: each such body is written once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from kernel_gen.codec import to_json
from kernel_gen.codegen.source import KernelSource
from kernel_gen.fusion.group import FusionGroup, FusionPlan
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Measurement
from kernel_gen.runtime.plan import (
    SCHEMA_VERSION,
    Layout,
    Plan,
    Provenance,
    SearchSummary,
)
from kernel_gen.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Body:
    """What equal kernels share."""

    nest: LoopNest
    schedule: Schedule
    source: KernelSource


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """A kernel; `body` is a position in `PlanRecord.bodies`."""

    group: FusionGroup
    operands: tuple[int, ...]
    body: int
    ops: tuple[str, ...]
    measurement: Measurement | None = None


@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """An object by name, digest (SHA-256, hexadecimal) and size."""

    name: str
    sha256: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The content of plan.json. `program` is None where no rewrite happened."""

    schema_version: int
    key: str
    graph: Graph
    program: Graph | None
    target: Target
    cover: FusionPlan
    bodies: tuple[Body, ...]
    kernels: tuple[KernelRecord, ...]
    objects: tuple[ObjectRecord, ...]
    provenance: Provenance
    summary: SearchSummary
    layout: Layout


def plan_to_json(plan: Plan) -> str:
    """Canonical plan.json."""
    return to_json(_record(plan))


def plan_digest(plan: Plan) -> str:
    """SHA-256 of plan.json, hexadecimal. It covers measurements and, by their digests, objects;
    names that are for people count too, since they are part of what is stored and shown."""
    return hashlib.sha256(plan_to_json(plan).encode()).hexdigest()


def _record(plan: Plan) -> PlanRecord:
    bodies: dict[str, Body] = {}  # by text: == takes 1, 1.0 and True for the same
    places: dict[str, int] = {}
    kernels: list[KernelRecord] = []
    texts: dict[tuple[int, ...], str] = {}  # kernels of equal groups mostly are the same objects
    for kernel in plan.kernels:
        body = Body(kernel.nest, kernel.schedule, kernel.source)
        same = (id(kernel.nest), id(kernel.schedule), id(kernel.source))
        text = texts.get(same) or texts.setdefault(same, to_json(body))
        bodies.setdefault(text, body)
        number = places.setdefault(text, len(places))
        kernels.append(
            KernelRecord(kernel.group, kernel.operands, number, kernel.ops, kernel.measurement)
        )
    return PlanRecord(
        schema_version=SCHEMA_VERSION,
        key=str(plan.key),
        graph=plan.graph,
        program=None if to_json(plan.program) == to_json(plan.graph) else plan.program,
        target=plan.target,
        cover=plan.cover,
        bodies=tuple(bodies.values()),
        kernels=tuple(kernels),
        objects=tuple(ObjectRecord(a.name, a.sha256, len(a.data)) for a in plan.artifacts),
        provenance=plan.provenance,
        summary=plan.summary,
        layout=plan.layout,
    )
