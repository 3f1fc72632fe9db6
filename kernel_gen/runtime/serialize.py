"""Plans from plan.json, checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from kernel_gen.codec import from_tree, parse
from kernel_gen.errors import InvalidInput, UntrustedBundle
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import SCHEMA_VERSION, Artifact, Kernel, Plan
from kernel_gen.runtime.plan_check import check_plan
from kernel_gen.runtime.plan_text import ObjectRecord, PlanRecord


def plan_from_json(text: str | bytes, objects: Mapping[str, bytes]) -> Plan:
    """The plan of a plan.json, with the bytes of its objects by SHA-256.

    Raises InvalidInput where the text is none, or of a schema that this version does not know, and
    UntrustedBundle where an object is missing or not what its digest says.
    """
    tree = parse(PlanRecord, text)
    _check_schema(tree)
    record = from_tree(PlanRecord, tree)
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


def _check_schema(tree: Any) -> None:
    """A newer schema gets an error that names both versions, whatever else the text holds."""
    version = tree.get("schema_version") if isinstance(tree, dict) else None
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
