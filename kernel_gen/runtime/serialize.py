"""plan.json: a plan as canonical JSON, and its content id.

Sources are part of the text, objects are named by their digest. Kernels of equal groups (the layers
of a transformer) share nest, schedule and source: each such body is written once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_gen.codec import from_json, to_json
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidInput, UntrustedBundle
from kernel_gen.fusion.group import FusionGroup, FusionPlan
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Measurement
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import (
    SCHEMA_VERSION,
    Artifact,
    Kernel,
    Layout,
    Plan,
    Provenance,
    SearchSummary,
)
from kernel_gen.runtime.plan_check import check_plan
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


def plan_from_json(text: str | bytes, objects: Mapping[str, bytes]) -> Plan:
    """The plan of a plan.json, with the bytes of its objects by SHA-256.

    Raises InvalidInput where the text is none, or of a schema that this version does not know, and
    UntrustedBundle where an object is missing or not what its digest says.
    """
    _check_schema(text)
    record = from_json(PlanRecord, text)
    kernels = tuple(_kernel(record, number) for number in range(len(record.kernels)))
    plan = Plan(
        key=PlanKey.parse(record.key),
        graph=record.graph,
        program=record.program or record.graph,
        target=record.target,
        cover=record.cover,
        kernels=kernels,
        artifacts=tuple(_artifact(item, objects) for item in record.objects),
        provenance=record.provenance,
        summary=record.summary,
        layout=record.layout,
    )
    check_plan(plan)
    return plan


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


def _check_schema(text: str | bytes) -> None:
    """A newer schema gets an error that names both versions, whatever else the text holds."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"plan.json is not JSON: {error}") from None
    version = found.get("schema_version") if isinstance(found, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidInput("plan.json has no schema_version")
    if version != SCHEMA_VERSION:
        raise InvalidInput(
            f"plan.json has schema version {version}, this version of graph-autofusion reads "
            f"{SCHEMA_VERSION}: {'upgrade it' if version > SCHEMA_VERSION else 'tune again'}"
        )


def _kernel(record: PlanRecord, number: int) -> Kernel:
    item = record.kernels[number]
    if not 0 <= item.body < len(record.bodies):
        raise InvalidInput(f"plan.json: kernel {number} has body {item.body}, which does not exist")
    body = record.bodies[item.body]
    if len(item.operands) != len(body.nest.buffers):
        raise InvalidInput(
            f"plan.json: kernel {number} has {len(item.operands)} operands for "
            f"{len(body.nest.buffers)} buffers"
        )
    return Kernel(
        item.group,
        item.operands,
        body.nest,
        body.schedule,
        body.source,
        item.ops,
        item.measurement,
    )


def _artifact(item: ObjectRecord, objects: Mapping[str, bytes]) -> Artifact:
    data = objects.get(item.sha256)
    if data is None:
        raise UntrustedBundle(f"object {item.sha256} of the plan is missing")
    if len(data) != item.nbytes or hashlib.sha256(data).hexdigest() != item.sha256:
        raise UntrustedBundle(f"object {item.sha256} of the plan is not what its digest says")
    return Artifact(item.name, item.sha256, data)
