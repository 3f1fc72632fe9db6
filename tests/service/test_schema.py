"""Random requests by the OpenAPI document, on ids that exist and ids that do not: no server error,
and every answer as the document says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from kernel_gen.records import JobState
from service.openapi import openapi_text
from tests.fixtures import samples
from tests.fixtures import server as servers
from tests.fixtures.server import Service

_EXAMPLES, _FEW = 12, 4  # few where each may start a converter
_TIMEOUT_SECONDS = 120  # of one answer
_CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(json.loads(openapi_text()))
OPERATIONS = {f"{o.ok().method} {o.ok().path}": o.ok() for o in SCHEMA.get_all_operations()}


@schemathesis.serializer("application/x-tar", "application/onnx", "application/zip")
def _as_it_is(context: Any, value: Any) -> Any:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("schema")
    with servers.running(servers.settings(folder, f"sqlite:///{folder}/store.db")) as started:
        yield started


@pytest.fixture(scope="module")
def known(service: Service) -> dict[str, str]:
    """Parameter of a path -> an id that exists: a graph, and a job that ended with a plan."""
    store, program = service.store, samples.graph()
    store.graphs.put(program)
    job = store.jobs.create(samples.request(program), samples.key(program)).job
    lease = store.queue.claim("driver-1")
    assert lease is not None
    store.trials.add(lease, [samples.trial(0), samples.trial(1, None)])
    plan = store.plans.publish(samples.plan(), lease)
    store.queue.finish(lease, JobState.DONE, plan_id=plan)
    artifact = samples.plan().artifacts[0].sha256
    return {"graph_id": program.digest, "job_id": job.id, "plan_id": plan, "sha256": artifact}


@pytest.mark.parametrize("name", OPERATIONS)
def test_random_requests_are_answered_as_described(
    service: Service, known: dict[str, str], name: str
) -> None:
    operation = OPERATIONS[name]

    @seed(1)
    @settings(
        max_examples=_FEW if "/graphs" in name and "post" in name else _EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy(), exists=st.booleans())
    def ask(case: Any, exists: bool) -> None:
        if exists:
            case.path_parameters |= {k: known[k] for k in case.path_parameters}
        answer = case.call(base_url=service.url, timeout=_TIMEOUT_SECONDS)
        case.validate_response(answer, checks=_CHECKS)

    ask()
