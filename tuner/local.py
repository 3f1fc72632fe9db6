"""A search without a service: `python -P -m tuner.local --store URL --cache DIR --graph FILE
--request FILE [--events-fd N] [--parent PID]`.

Opens (and upgrades) the private store, creates or joins the job of the request's key, runs it as a
driver would, and puts the signed plan into the bundle cache. Events go to descriptor N as JSON
lines: `kind` and the event's data. When the process PID that started this one ends, the search is
cancelled. A job that it has made never waits on without it: it ends done, failed or cancelled.

Exit status: 0 the plan is in the cache; 2 invalid arguments or input; 3 something is unavailable
here (a compiler, the cache); 4 the job failed; 130 cancelled by SIGINT or SIGTERM (trials are
kept). The last line on standard error says why.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from db.store import Store
from kernel_gen.codec import from_json
from kernel_gen.collector import collect_seldom
from kernel_gen.errors import GafError, InvalidInput, Unavailable
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.serialize import graph_from_json
from kernel_gen.lifetime.parent import end_with_parent
from kernel_gen.lifetime.scratch import sweep
from kernel_gen.records import Job, JobRequest, JobState
from kernel_gen.runtime.cache import BundleCache
from kernel_gen.runtime.device_names import device_target
from kernel_gen.runtime.key import PlanKey, plan_key
from kernel_gen.runtime.requires import sentence, this_process
from tuner.archive import EventData
from tuner.devices.device import Device
from tuner.devices.ray_runtime import ray_runtime
from tuner.driver import stop_on_signals
from tuner.job_runner import JobRunner
from tuner.own_jobs import OwnJobs
from tuner.store_archive import OnEvent

_JOIN_SECONDS = 0.3
EXIT_INVALID, EXIT_UNAVAILABLE, EXIT_FAILED, EXIT_CANCELLED = 2, 3, 4, 130


class LocalSearch:
    """One request against one store."""

    def __init__(
        self, store: Store, cache: BundleCache, stop: threading.Event, on_event: OnEvent
    ) -> None:
        self._store, self._cache, self._stop, self._on_event = store, cache, stop, on_event
        self._owner = f"{socket.gethostname()}:{os.getpid()}"

    def run(self, graph: Graph, request: JobRequest) -> Job:
        """The job in its final state; a done one's plan is in the cache."""
        self._store.graphs.put(graph)
        with OwnJobs(self._store, self._owner, self._stop) as own:
            job = self._ended(self._key(graph, request), request, own)
        job = self._store.jobs.get(job.id)
        if job.state is JobState.DONE and job.plan_id is not None:
            self._cache.put(self._store.plans.get(job.plan_id))
        return job

    def _ended(self, key: PlanKey, request: JobRequest, own: OwnJobs) -> Job:
        """The request's job when it has ended, or the search is stopped."""
        job = own.create(request, key)
        if job.plan_id is not None and not self._runs_here(job.plan_id):
            job = own.create(replace(request, force=True), key)
        while not job.state.is_terminal and not self._stop.is_set():
            if job.state is JobState.QUEUED:
                self._search(job)
            else:
                self._follow(job)
            self._store.queue.expire()  # a job whose process was killed waits again
            job = self._store.jobs.get(job.id)
            if job.state is JobState.CANCELLED and not self._stop.is_set():
                job = own.create(request, key)  # it was called off elsewhere
        return job

    def _runs_here(self, plan_id: str) -> bool:
        """Whether a plan of the key is one for this process's versions, too."""
        try:
            plan = self._store.plans.get(plan_id)
        except InvalidInput:
            return False  # of a schema that this version does not read
        return sentence(plan.provenance, this_process()) is None

    def _key(self, graph: Graph, request: JobRequest) -> PlanKey:
        return plan_key(
            graph,
            device_target(request.device),
            numerics=request.numerics,
            training=request.training,
            rules=request.rules,
        )

    def _search(self, job: Job) -> None:
        try:
            self._claim_and_run(job)
        except SystemExit:  # SIGTERM, while Ray starts under a handler of its own
            self._stop.set()

    def _claim_and_run(self, job: Job) -> None:
        with suppress(_Cancelled), self._device(job.request.device) as device:
            lease = self._store.queue.claim(self._owner, job_id=job.id)
            if lease is None:
                return  # another process was faster
            JobRunner(
                self._store, lease, device, cancel=self._stop.is_set, on_event=self._on_event
            ).run()

    def _device(self, name: str) -> AbstractContextManager[Device]:
        return _opened(name, self._on_event, self._check_stop)

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise _Cancelled

    def _follow(self, job: Job) -> None:
        """Another process works on the job: hand on its events until it ends or is lost."""
        latest = self._store.events.latest(job.id, "progress")
        if latest is not None:
            self._on_event("progress", json.loads(latest.data))
        self._stop.wait(_JOIN_SECONDS)


class _Cancelled(Exception):
    """The search is cancelled before it has begun."""


@contextmanager
def _opened(name: str, on_event: OnEvent, check_stop: Callable[[], None]) -> Iterator[Device]:
    """A Ray actor as in the service; where Ray cannot start, the device in this process."""
    from tuner.devices.opening import open_device

    with _ray_or_none(on_event) as has_ray:
        check_stop()
        device = _ray_device(name, check_stop) if has_ray else open_device(name)
        try:
            yield device
        finally:
            device.close()


def _ray_device(name: str, check_stop: Callable[[], None]) -> Device:
    from tuner.devices.ray_device import (
        RayDevice,  # imports Ray, which must find its environment ready
    )

    return RayDevice(name, check_stop=check_stop)


@contextmanager
def _ray_or_none(on_event: OnEvent) -> Iterator[bool]:
    runtime = ray_runtime()
    try:
        runtime.__enter__()
    except Unavailable as error:
        on_event("log", {"message": f"measuring without Ray: {error}"})
        yield False
        return
    try:
        yield True
    finally:
        runtime.__exit__(None, None, None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit status."""
    collect_seldom()
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except InvalidInput as error:
        return _end(EXIT_INVALID, str(error))
    except (Unavailable, OSError) as error:
        return _end(EXIT_UNAVAILABLE, str(error))
    except GafError as error:
        return _end(EXIT_FAILED, str(error))
    finally:
        sweep(Path(tempfile.gettempdir()))  # what a parent that was killed has left


def _run(options: argparse.Namespace) -> int:
    if options.parent is not None:
        end_with_parent(options.parent)
    graph = graph_from_json(options.graph.read_text(encoding="utf-8"))
    request = from_json(JobRequest, options.request.read_text(encoding="utf-8"))
    stop = threading.Event()
    with (
        _events(options.events_fd) as on_event,
        stop_on_signals(stop),
        Store(options.store) as store,
    ):
        job = LocalSearch(store, BundleCache(options.cache), stop, on_event).run(graph, request)
    if job.state is JobState.DONE:
        return 0
    if job.state is JobState.FAILED:
        error = job.error
        return _end(EXIT_FAILED, "the job failed" if error is None else error.message)
    return _end(EXIT_CANCELLED, "cancelled")


@contextmanager
def _events(descriptor: int | None) -> Iterator[OnEvent]:
    """Writes events as JSON lines; a reader that is gone does not end the search."""
    if descriptor is None:
        yield lambda kind, data: None
        return
    with os.fdopen(descriptor, "w", encoding="utf-8", buffering=1) as lines:

        def write(kind: str, data: EventData) -> None:
            try:
                lines.write(json.dumps({"kind": kind, **data}) + "\n")
            except BrokenPipeError:
                return

        yield write


def _end(status: int, message: str) -> int:
    print(message.replace("\n", " "), file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tuner.local", description="Tunes one program.")
    parser.add_argument("--store", required=True, help="SQLAlchemy URL of the private store")
    parser.add_argument("--cache", required=True, type=Path, help="folder of the bundle cache")
    parser.add_argument("--graph", required=True, type=Path, help="file with the graph's JSON")
    parser.add_argument("--request", required=True, type=Path, help="file with the request's JSON")
    parser.add_argument("--events-fd", type=int, help="descriptor for events as JSON lines")
    parser.add_argument("--parent", type=int, help="the process that this one ends with")
    return parser


if __name__ == "__main__":
    sys.exit(main())
