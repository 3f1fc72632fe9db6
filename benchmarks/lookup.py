"""Speed of plan lookups: in this process, and over HTTP keep-alive from several connections.

    python -m benchmarks.lookup [--db URL] [--seconds 3] [--connections 8] [--json]

Reads `--db` (an empty, upgraded database; default: a new SQLite file), publishes plans into it and
asks for them. Reported per way: lookups a second, and the 50th and 99th percentile in microseconds.
The target is 5,000 a second from one server process with a 99th percentile of 5 ms or less on one
connection while the server is otherwise idle.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from db.store import Store
from kernel_gen.errors import Unavailable
from kernel_gen.fusion.group import FusionPlan
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, Input, Node, Output
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import plan_key
from kernel_gen.runtime.plan import Plan, Provenance, SearchSummary

_PLANS = 200


@dataclass(frozen=True, slots=True)
class Speed:
    """One way of asking. Percentiles in microseconds."""

    way: str
    connections: int
    per_second: float
    p50_us: float
    p99_us: float


def speed(way: str, connections: int, times_us: Sequence[float], seconds: float) -> Speed:
    """The figures of a run that took `seconds`."""
    cuts = statistics.quantiles(times_us, n=100)
    return Speed(way, connections, len(times_us) / seconds, cuts[49], cuts[98])


def sample_plan(rows: int, target: Target) -> Plan:
    """A plan that runs one op in the framework; `rows` tells plans apart."""
    matrix = TensorType(DType.F32, (rows, 8))
    nodes = (Node("relu", (0,), (1,)),)
    graph = Graph((matrix, matrix), (Input(0),), nodes, (Output(1),))
    return Plan(
        key=plan_key(graph, target),
        graph=graph,
        program=graph,
        target=target,
        cover=FusionPlan(()),
        kernels=(),
        artifacts=(),
        provenance=Provenance("none", (), "1", 1, "2.13.0", "glibc 2.36", ("avx2",)),
        summary=SearchSummary(10.0, 5.0, 5.0, True, 1, 0, 1.0, 1.0),
    )


def in_process(store: Store, keys: Sequence[str], seconds: float) -> Speed:
    """Asks `store.lookup` in a loop."""
    return _loop("in process", lambda number: store.lookup(keys[number % len(keys)]), seconds)


def _loop(way: str, ask: Callable[[int], object], seconds: float) -> Speed:
    times: list[float] = []
    began = time.perf_counter()
    while (now := time.perf_counter()) - began < seconds:
        ask(len(times))
        times.append((time.perf_counter() - now) * 1e6)
    return speed(way, 1, times, time.perf_counter() - began)


async def over_http(url: str, keys: Sequence[str], connections: int, seconds: float) -> Speed:
    """Asks over kept-alive connections, one request after the other on each."""
    host, port = url.removeprefix("http://").split(":")
    times: list[float] = []
    began = time.perf_counter()
    asking = [_ask(host, int(port), keys, began + seconds, times) for _ in range(connections)]
    await asyncio.gather(*asking)
    return speed("HTTP", connections, times, time.perf_counter() - began)


async def _ask(
    host: str, port: int, keys: Sequence[str], end: float, times_us: list[float]
) -> None:
    """A bare client: the one that is measured is the server."""
    reader, writer = await asyncio.open_connection(host, port)
    number = 0
    while (now := time.perf_counter()) < end:
        key = keys[number % len(keys)]
        number += 1
        writer.write(f"GET /v1/plans/lookup?key={key} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise Unavailable(f"the server said {head.splitlines()[0].decode()}")
        await reader.readexactly(_length(head))
        times_us.append((time.perf_counter() - now) * 1e6)
    writer.close()
    await writer.wait_closed()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    raise Unavailable("the server gave no length")


@contextmanager
def served(db: str) -> Iterator[str]:
    """The service in a process of its own, without a driver; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = (
        "import sys; from service.main import serve; from service.settings import Settings; "
        f"serve(Settings(db=sys.argv[1], port={port}), driver=False, "
        "on_ready=lambda url: print(url, flush=True))"
    )
    command = [sys.executable, "-c", code, db]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def measure(db: str, seconds: float, connections: int) -> list[Speed]:
    """All ways of asking, one after the other."""
    target = host_target()
    plans = [sample_plan(rows, target) for rows in range(1, _PLANS + 1)]
    keys = [str(plan.key) for plan in plans]
    with Store(db) as store:
        for plan in plans:
            store.plans.publish(plan)
        found = [in_process(store, keys, seconds)]
    with served(db) as url:
        for count in (1, connections):
            found.append(asyncio.run(over_http(url, keys, count, seconds)))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--db", help="SQLAlchemy URL; default: a new SQLite file")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        db = options.db or f"sqlite:///{Path(folder) / 'store.db'}"
        found = measure(db, options.seconds, options.connections)
    if options.json:
        print(json.dumps({"cores": os.cpu_count(), "speeds": [asdict(one) for one in found]}))
        return
    for one in found:
        print(
            f"{one.way:>10} {one.connections:>3} connections: {one.per_second:9.0f}/s, "
            f"p50 {one.p50_us:7.1f} µs, p99 {one.p99_us:7.1f} µs"
        )


if __name__ == "__main__":
    main()
