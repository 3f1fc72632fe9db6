"""A search on a machine that lacks something says what, and leaves nothing half-written that could
be taken for a plan later."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from db.schema import jobs, plan_artifacts, plan_heads, plans
from db.store import Store
from kernel_gen.codec import to_json
from kernel_gen.errors import Unavailable
from kernel_gen.records import Budget, Job, JobRequest, JobState
from kernel_gen.runtime.cache import BundleCache
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import plan_key
from tests.tuner.tuner_jobs import add_relu_graph
from tuner import local
from tuner.devices import opening
from tuner.devices.device import LocalDevice
from tuner.own_jobs import OwnJobs

Search = Callable[..., tuple[int, str]]


@contextmanager
def _no_ray(*_: object) -> Iterator[None]:
    raise Unavailable("Ray did not start: no room for it")
    yield


@pytest.fixture
def search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Search:
    """Runs `tuner.local` in this process, without Ray: its exit status and its last words."""
    monkeypatch.setattr(local, "ray_runtime", _no_ray)
    graph = add_relu_graph()
    (tmp_path / "graph.json").write_text(graph.to_json())
    request = JobRequest(graph.digest, "cpu", Budget(20.0, 2))
    (tmp_path / "request.json").write_text(to_json(request))

    def run(store: Path, cache: Path) -> tuple[int, str]:
        files = {"--graph": "graph.json", "--request": "request.json"}
        arguments = [text for name, file in files.items() for text in (name, str(tmp_path / file))]
        where = ["--store", f"sqlite:///{store}/store.db", "--cache", str(cache)]
        status = local.main([*where, *arguments])
        words = capsys.readouterr().err.strip().splitlines()
        return status, words[-1] if words else ""

    return run


@contextmanager
def small_disk(place: Path, options: str) -> Iterator[Path]:
    """A file system of its own at `place`."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no mount is allowed here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_compiler_that_is_missing_is_named(
    search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    status, words = search(tmp_path, tmp_path / "bundles")
    assert (status, "install g++" in words) == (3, True)
    assert not (tmp_path / "bundles").exists()


def test_a_compiler_that_fails_is_quoted(
    search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "cxx"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec echo 1.0\necho "no luck" >&2\nexit 1\n'
    )
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    status, words = search(tmp_path, tmp_path / "bundles")
    assert (status, "no luck" in words) == (3, True)
    assert not (tmp_path / "bundles").exists()


@pytest.fixture
def one_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All searches of a test measure on one device: opening it takes longer than they do."""
    device, close = LocalDevice(), LocalDevice.close
    monkeypatch.setattr(opening, "open_device", lambda name: device)
    monkeypatch.setattr(LocalDevice, "close", lambda self: None)
    yield
    close(device)


def _of_an_older_torch(store: Store, plan_id: str) -> None:
    plan = store.plans.get(plan_id)
    store.plans.publish(replace(plan, provenance=replace(plan.provenance, torch="1.9")))


def _of_an_older_schema(store: Store, plan_id: str) -> None:
    text = store.plans.text(plan_id).replace('"schema_version":1', '"schema_version":0')
    new_id = hashlib.sha256(text.encode()).hexdigest()
    with store.database.rebuild() as connection:  # references are checked at its end
        for column, values in (
            (plans.c.id, {"id": new_id, "payload": text}),
            (plan_heads.c.plan_id, {"plan_id": new_id}),
            (plan_artifacts.c.plan_id, {"plan_id": new_id}),
            (jobs.c.plan_id, {"plan_id": new_id}),
        ):
            connection.execute(sa.update(column.table).where(column == plan_id).values(**values))


@pytest.mark.slow
def test_plans_of_another_version_are_searched_again(
    search: Search, one_device: None, tmp_path: Path
) -> None:
    """What a store holds from before an upgrade of torch, or of this package's schema."""
    graph, bundles = add_relu_graph(), tmp_path / "bundles"
    key = plan_key(graph, host_target())

    def current() -> str:
        with Store(f"sqlite:///{tmp_path}/store.db") as store:
            found = store.plans.head(str(key))
            assert found is not None
            return found

    assert search(tmp_path, bundles) == (0, "")
    first = current()
    assert search(tmp_path, bundles) == (0, "")
    assert current() == first  # known: nothing is searched
    for outdate in (_of_an_older_torch, _of_an_older_schema):
        with Store(f"sqlite:///{tmp_path}/store.db") as store:
            outdate(store, current())
        outdated = current()
        assert search(tmp_path, bundles) == (0, "")
        assert current() != outdated
        assert BundleCache(bundles).get(key) is not None


@pytest.mark.slow
def test_full_and_read_only_disks_are_named_and_lose_nothing(
    search: Search, tmp_path: Path
) -> None:
    """First the store has no room, then the cache may not be written; then the plan is there, and
    no search is needed for it."""
    with small_disk(tmp_path / "full", "size=400k") as full:
        status, words = search(full, tmp_path / "bundles")
        assert (status, "disk is full" in words) == (3, True), words
    assert not (tmp_path / "bundles").exists()
    with small_disk(tmp_path / "sealed", "ro,size=64k") as sealed:
        status, words = search(tmp_path, sealed / "bundles")
        assert (status, "Read-only file system" in words) == (3, True), words
        assert "bundle cache" in words
    status, words = search(tmp_path, tmp_path / "bundles")
    assert (status, words) == (0, "")
    assert len(list((tmp_path / "bundles" / "plans").iterdir())) == 1


def test_a_search_that_another_process_calls_off_goes_on_here(tmp_path: Path) -> None:
    graph = add_relu_graph()
    request = JobRequest(graph.digest, "cpu", Budget(20.0, 2))
    stop = threading.Event()
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        store.graphs.put(graph)
        theirs = store.jobs.create(request, plan_key(graph, host_target())).job
        lease = store.queue.claim("other", job_id=theirs.id)
        assert lease is not None

        class Search(local.LocalSearch):
            """One that stops where it would begin to measure."""

            def _search(self, job: Job) -> None:
                stop.set()

            def _follow(self, job: Job) -> None:
                store.queue.finish(lease, JobState.CANCELLED)

        search = Search(store, BundleCache(tmp_path / "bundles"), stop, lambda kind, data: None)
        ours = search.run(graph, request)
        assert stop.is_set()
        assert ours.id != theirs.id
        assert (ours.key, ours.state) == (theirs.key, JobState.CANCELLED)
        assert store.jobs.get(theirs.id).state is JobState.CANCELLED


@pytest.mark.parametrize("ending", [SystemExit, Unavailable, ValueError])
@pytest.mark.parametrize("held", [False, True])
def test_a_search_that_is_cut_off_leaves_no_job_in_the_queue(
    tmp_path: Path, ending: type[BaseException], held: bool
) -> None:
    graph = add_relu_graph()
    request = JobRequest(graph.digest, "cpu", Budget(20.0, 2))
    stop = threading.Event()
    with Store(f"sqlite:///{tmp_path}/store.db") as store:

        class Search(local.LocalSearch):
            def _claim_and_run(self, job: Job) -> None:
                if held:
                    assert store.queue.claim(self._owner, job_id=job.id) is not None
                raise ending

        search = Search(store, BundleCache(tmp_path / "bundles"), stop, lambda kind, data: None)
        with suppress(ending):
            search.run(graph, request)
        assert stop.is_set() == (ending is SystemExit)
        (job,) = store.jobs.list()
        assert job.state is JobState.CANCELLED


def test_a_stop_is_stored_at_once_and_leaves_the_jobs_of_others_alone(tmp_path: Path) -> None:
    """What is stored before the search has ended holds if it is killed then."""
    graph = add_relu_graph()
    request = JobRequest(graph.digest, "cpu", Budget(20.0, 2))
    key = plan_key(graph, host_target())
    stop = threading.Event()
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        store.graphs.put(graph)
        with OwnJobs(store, "me", stop) as own:
            mine = own.create(request, key)
            assert store.queue.claim("me", job_id=mine.id) is not None
            stop.set()
            end = time.monotonic() + 60
            while not store.jobs.get(mine.id).cancel_requested:
                assert time.monotonic() < end
                time.sleep(0.02)
        assert store.jobs.get(mine.id).state is JobState.CANCELLED
        theirs = store.jobs.create(request, key).job
        with OwnJobs(store, "me", stop) as own:
            assert own.create(request, key).id == theirs.id
        assert store.jobs.get(theirs.id).state is JobState.QUEUED
