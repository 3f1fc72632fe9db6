"""plan.json: round trip, content id, schema versions, damage."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kernel_gen.errors import InvalidInput, UntrustedBundle
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.records import Measurement, Protocol
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.plan_text import plan_digest, plan_to_json
from kernel_gen.runtime.serialize import plan_from_json
from tests.runtime.small_plans import chain_graph, f32, plan_of


@pytest.fixture(scope="module")
def plan(compiler: Compiler) -> Plan:
    return plan_of(chain_graph(), compiler, packed=(2,), framework=(0,))


def objects(plan: Plan) -> dict[str, bytes]:
    return {artifact.sha256: artifact.data for artifact in plan.artifacts}


def test_round_trip(plan: Plan) -> None:
    text = plan_to_json(plan)
    found = plan_from_json(text, objects(plan))
    assert found == plan
    assert plan_to_json(found) == text


def test_rewritten_program_and_measurements_survive(plan: Plan) -> None:
    program = replace(plan.program, symbols=())
    named = replace(plan.graph.nodes[0], attrs=(("note", 1),))
    graph = replace(plan.graph, nodes=(named, *plan.graph.nodes[1:]))
    measured = replace(
        plan.kernels[0], measurement=Measurement((1.5, 2.0), Protocol(2, 10, 3, "warm"))
    )
    changed = replace(plan, graph=graph, program=program, kernels=(measured, *plan.kernels[1:]))
    assert plan_from_json(plan_to_json(changed), objects(plan)) == changed


def test_equal_kernels_share_a_body(compiler: Compiler) -> None:
    b = GraphBuilder()
    value = b.input(f32(4, 4))
    for _ in range(5):
        value = b.op("neg", value)
    b.output(value)
    plan = plan_of(b.build(), compiler)
    tree = json.loads(plan_to_json(plan))
    assert len(tree["bodies"]) == 1
    assert len(tree["kernels"]) == 5
    assert plan_from_json(json.dumps(tree), objects(plan)) == plan


def test_id_covers_what_matters(plan: Plan) -> None:
    assert plan.id == plan_digest(replace(plan))
    others = [
        replace(plan, summary=replace(plan.summary, measured_us=9.0)),
        replace(plan, provenance=replace(plan.provenance, libc="glibc 9")),
        replace(plan, artifacts=(replace(plan.artifacts[0], sha256="0" * 64),)),
    ]
    assert len({plan.id, *(other.id for other in others)}) == 4


@pytest.mark.parametrize(("version", "advice"), [(2, "upgrade"), (0, "tune again")])
def test_other_schema_is_named(plan: Plan, version: int, advice: str) -> None:
    tree = json.loads(plan_to_json(plan)) | {"schema_version": version, "new_field": 1}
    with pytest.raises(InvalidInput, match=f"schema version {version}, .* reads 1: {advice}"):
        plan_from_json(json.dumps(tree), objects(plan))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema_version":true}', '{"schema_version":1}', "[" * 100_000]
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        plan_from_json(text, {})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("kernels", 0, "body"), 7),
        (("kernels", 0, "operands"), [1]),
        (("kernels", 0, "operands", 0), 999),
        (("layout", "segments", 0, "framework"), 9),
        (("layout", "segments", 1, "kernels", 0), 9),
        (("layout", "constants", 0), -1),
        (("layout", "buffers", 0), 999),
        (("cover", "groups", 0, "nodes"), [99]),
    ],
)
def test_numbers_out_of_range_are_refused(
    plan: Plan, path: tuple[str | int, ...], value: object
) -> None:
    tree = json.loads(plan_to_json(plan))
    place = tree
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(InvalidInput):
        plan_from_json(json.dumps(tree), objects(plan))


def test_objects_must_be_what_the_plan_names(plan: Plan) -> None:
    text = plan_to_json(plan)
    (digest,) = objects(plan)
    with pytest.raises(UntrustedBundle, match="missing"):
        plan_from_json(text, {})
    with pytest.raises(UntrustedBundle, match="not what its digest says"):
        plan_from_json(text, {digest: b"other"})
