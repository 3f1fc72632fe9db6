"""Fifty processes' worth of clients that all want one program at once: one job, one plan."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graph_autofusion.client import Client
from kernel_gen.records import Budget, JobRequest, JobState
from tests.fixtures import samples
from tests.fixtures.server import running, settings

_CLIENTS = 50


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def test_fifty_cold_clients_make_one_job(
    request: pytest.FixtureRequest, database: str, tmp_path: Path
) -> None:
    if database == "sqlite":
        url = request.getfixturevalue("sqlite_url")
    else:
        server = request.getfixturevalue("postgres")
        url = server.create(server.template)
    graph = samples.graph()
    wish = JobRequest(graph.digest, "cpu", Budget(5.0))
    together = threading.Barrier(_CLIENTS)
    with running(settings(tmp_path, url)) as service:

        def ask(number: int) -> str:
            with Client(service.url) as client:
                together.wait(60)
                return client.submit_graph(graph, wish).id

        with ThreadPoolExecutor(_CLIENTS) as pool:
            (job,) = set(pool.map(ask, range(_CLIENTS)))
        assert [found.id for found in service.store.jobs.list()] == [job]
        lease = service.store.queue.claim("driver-1")
        assert lease is not None
        plan = service.store.plans.publish(samples.plan(), lease)
        service.store.queue.finish(lease, JobState.DONE, plan_id=plan)
        with Client(service.url) as client:
            assert client.job(job).details["plan"] == plan
