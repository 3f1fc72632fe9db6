"""`python -P -m tuner.local` as the front door starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import ray
from tuner_jobs import add_relu_graph

from db.store import Store
from kernel_gen.codec import to_json
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Budget, JobRequest, JobState
from kernel_gen.runtime.cache import BundleCache
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import plan_key

ROOT = Path(__file__).parents[2]


@dataclass
class Local:
    """The command with a store, a cache and a configuration of its own."""

    folder: Path

    def start(self, graph: Graph, budget: Budget) -> tuple[subprocess.Popen[bytes], int]:
        """The process, and the descriptor its events come from."""
        (self.folder / "graph.json").write_text(graph.to_json())
        request = JobRequest(graph.digest, "cpu", budget)
        (self.folder / "request.json").write_text(to_json(request))
        reader, writer = os.pipe()
        process = subprocess.Popen(
            [*self.command(), "--events-fd", str(writer)],
            pass_fds=(writer,),
            stderr=subprocess.PIPE,
            env=self.environment(),
        )
        os.close(writer)
        return process, reader

    def command(self) -> list[str]:
        files = [("graph", "graph.json"), ("request", "request.json"), ("cache", "cache")]
        options = [f"--{name}={self.folder / file}" for name, file in files]
        return [sys.executable, "-P", "-m", "tuner.local", f"--store={self.url}", *options]

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/store.db"

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(self.folder)}

    def run(self, graph: Graph, budget: Budget) -> tuple[int, list[dict[str, object]]]:
        """Exit status and events."""
        process, reader = self.start(graph, budget)
        with os.fdopen(reader) as lines:
            events = [json.loads(line) for line in lines]
        process.communicate()
        return process.returncode, events


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Local:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Local(tmp_path)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_a_program_is_tuned_once_and_then_known(
    local: Local, ray_session: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster that somebody runs on this machine is left alone."""
    # Sockets of Ray have at most 107 characters, so the folder is not pytest's.
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        last = Path(folder, "ray", "ray_current_cluster")  # what `ray start` leaves
        last.parent.mkdir()
        last.write_text(ray.get_runtime_context().gcs_address)
        monkeypatch.setenv("RAY_TMPDIR", folder)
        _tuned_once_and_then_known(local)


def _tuned_once_and_then_known(local: Local) -> None:
    graph = add_relu_graph()
    status, events = local.run(graph, Budget(60.0, trials=4))
    assert status == 0
    assert {"progress", "cover"} <= {event["kind"] for event in events}
    assert not [event for event in events if "without Ray" in str(event)]
    plan = BundleCache(local.folder / "cache").get(plan_key(graph, host_target()))
    assert plan is not None
    assert plan.graph.digest == graph.digest
    status, events = local.run(graph, Budget(60.0, trials=4))
    assert (status, events) == (0, [])


@pytest.mark.ray
@pytest.mark.slow
def test_an_interrupted_search_keeps_its_trials(local: Local) -> None:
    process, reader = local.start(add_relu_graph(1 << 16), Budget(600.0))
    with os.fdopen(reader) as lines:
        for line in lines:
            event = json.loads(line)
            if event["kind"] == "progress" and event["done"]:
                process.send_signal(signal.SIGINT)
                break
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.decode().strip().endswith("cancelled")
    with Store(local.url) as store:
        (job,) = store.jobs.list()
        assert job.state is JobState.CANCELLED
        assert store.trials.tally(job.id).total() > 0


def test_a_broken_graph_is_the_callers_mistake(local: Local) -> None:
    process, reader = local.start(add_relu_graph(), Budget(1.0))
    process.kill()
    process.communicate()
    os.close(reader)
    (local.folder / "graph.json").write_text('{"nodes": 3}')
    done = subprocess.run(
        local.command(), capture_output=True, env=local.environment(), check=False
    )
    assert done.returncode == 2
    assert done.stderr.strip()
