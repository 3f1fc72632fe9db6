"""One measuring process: holds one contender on one workload and times it on command.

It is forked from a `zygote` (torch is imported once per malloc setting, not per contender) and
speaks JSON lines over a Unix socket: its facts first, then a sample per request. Outputs are
dropped after each call: every contender has to come up with fresh ones.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.suite.correctness import judge
from benchmarks.suite.peers import builder
from benchmarks.suite.peers.work import Built, Work
from benchmarks.suite.reference import Effort, load_reference, reference, save_reference
from benchmarks.suite.workloads import Case, load_case

Run = Callable[[], Any]
SAMPLE_SECONDS = 0.05
FLOOR = "floor"  # no contender: the probes of this machine
REFERENCE = "reference"  # no contender: leaves the results to expect in a file
_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class Order:
    """What a measuring process is for. `reference` is the file of the results to expect; `effort`
    what the workload has to do, which only the probes need."""

    contender: str
    workload: str
    threads: int
    reference: str
    cases: str | None = None
    effort: Effort | None = None


def time_once(run: Run, seconds: float = SAMPLE_SECONDS) -> dict[str, float]:
    """Mean microseconds and minor page faults per call, over at least `seconds`.

    One call before them is not counted: it wakes thread pools and fills the caches that the
    contenders in between have emptied.
    """
    run()
    calls = 0
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    start = now = time.perf_counter()
    while calls == 0 or now - start < seconds:
        run()
        calls += 1
        now = time.perf_counter()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    return {"us": (now - start) / calls * 1e6, "faults": faults / calls}


def prepare(order: Order) -> tuple[dict[str, Run], dict[str, Any]]:
    """The runs of an order, warmed up, and its facts; `missing` among them says why it has none."""
    if order.contender == REFERENCE:
        return {}, _reference(order)
    if order.contender == FLOOR:
        return _probes(order)
    start = time.perf_counter()
    try:
        built, facts = _contender(order)
        seconds = time.perf_counter() - start
        built.run()
    except Exception as problem:  # noqa: BLE001 - a peer that fails is reported as missing
        return {}, {"missing": reason(problem)}
    gc.collect()
    return {order.contender: built.run}, {**facts, "setup_seconds": round(seconds, 3)}


def _load(order: Order) -> Case:
    return load_case(order.workload, Path(order.cases) if order.cases else None)


def _reference(order: Order) -> dict[str, Any]:
    try:
        found, effort = reference(lambda: _load(order))
    except Exception as problem:  # noqa: BLE001 - the workload is reported, others go on
        return {"missing": f"eager does not run: {reason(problem)}"}
    save_reference(found, Path(order.reference))
    return asdict(effort)


def _contender(order: Order) -> tuple[Built, dict[str, Any]]:
    expected = load_reference(Path(order.reference))
    model, inputs, _ = _load(order)
    work = Work(model, inputs, expected.mutated, order.threads)
    built = builder(order.contender)(work)
    verdict = judge(built.results(built.run()), expected.expected)
    return built, {**built.facts, "max_error": verdict.max_error, "wrong": verdict.wrong}


def _probes(order: Order) -> tuple[dict[str, Run], dict[str, Any]]:
    from cost_models.probes import Probes

    assert order.effort is not None
    try:
        probes = Probes(order.threads)
        fma, operations = probes.fma(order.effort.dtype)
        copies = probes.copies(order.effort.read_bytes, order.effort.written_bytes)
        functions = {name: probes.function(name) for name in order.effort.functions}
        applied = {name: run for name, (run, _) in functions.items()}
        runs: dict[str, Run] = {**copies, "fma": fma, **applied}
    except Exception as problem:  # noqa: BLE001 - without a compiler there is no floor, but times
        return {}, {"missing": reason(problem)}
    elems = {name: count for name, (_, count) in functions.items()}
    return runs, {"fma_operations": operations, "function_elems": elems}


def reason(problem: Exception) -> str:
    """One line for a table: what went wrong, without the pages that exporters print."""
    if isinstance(problem, ModuleNotFoundError):
        return f"not installed ({problem.name})"
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return " ".join([type(problem).__name__ + ":", *lines])[:_REASON_CHARS]


def serve(order: Order, connection: socket.socket) -> None:
    """Answers requests until the other side hangs up."""
    torch.set_num_threads(order.threads)
    with connection.makefile("r") as requests, connection.makefile("w") as answers:

        def answer(value: Mapping[str, Any]) -> None:
            answers.write(json.dumps(value) + "\n")
            answers.flush()

        answer({"pid": os.getpid()})
        with torch.no_grad():
            runs, facts = prepare(order)
            answer(facts)
            for _ in requests:
                answer({name: time_once(run) for name, run in runs.items()})
