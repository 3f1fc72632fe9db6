"""`gaf demo`: the main job end to end, on a service of its own.

Starts the service on a free loopback port with a fresh SQLite store and a Ray worker, submits the
seed program over REST, lets a second process fetch and run the plan, and says what came of it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from graph_autofusion.busy import other_work
from graph_autofusion.cli.output import JsonFlag, print_json
from graph_autofusion.client import Client
from graph_autofusion.progress import tuning_progress, waiting
from graph_autofusion.report import unfused_lines
from kernel_gen.errors import GafError, Unavailable
from kernel_gen.ir.graph import Graph
from kernel_gen.lifetime.parent import end_with_parent
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.records import Budget

_START_SECONDS = 60.0
_STOP_SECONDS = 20.0


def demo(
    seconds: Annotated[float, typer.Option("--seconds", help="budget of the search")] = 30.0,
    rows: Annotated[int, typer.Option("--rows", help="rows of the input", min=1)] = 1024,
    output: Annotated[Path, typer.Option("--output", help="where pictures go")] = Path("demo-out"),
    as_json: JsonFlag = False,
) -> None:
    """Tune LayerNorm -> ReLU -> Linear over REST and show the plan at work."""
    console = Console(stderr=as_json)
    output.mkdir(parents=True, exist_ok=True)
    if busy := other_work():
        _say(console, f"{busy}: times will be noisy, and less is tried")
    with Scratch("demo") as folder:
        store = f"sqlite:///{folder}/service.sqlite"
        with _service(store, folder / "service.log") as (url, await_ready):
            with waiting("starting a service"):
                graph = _program(rows)  # beside the service, which takes as long to start
                await_ready()
            _say(console, f"service on {url}")
            job = _tuned(console, url, graph, Budget(seconds))
            facts = _deployed(console, url, folder, rows, output)
            facts |= {"job": job, "dashboard": url}
            if as_json:
                print_json(facts)
            _show(console, facts)
            if sys.stdin.isatty() and sys.stdout.isatty():
                _say(console, f"dashboard: {url}, until you press Enter")
                sys.stdin.readline()
            else:
                _say(console, f"dashboard: {url}, which stops now (no terminal)")


def _program(rows: int) -> Graph:
    from graph_autofusion.capturing import capture
    from graph_autofusion.cli.demo_model import build

    return capture(*build(rows))


def _tuned(console: Console, url: str, graph: Graph, budget: Budget) -> str:
    """The id of the job that has found the plan."""
    with Client(url) as client:
        job = client.submit(graph, budget=budget)
        _say(console, f"submitted as job {job.id}, tuning for {budget.seconds:.0f} s")
        with tuning_progress(budget) as on_event:
            for event in job.events():
                on_event(event)
        job.wait(_STOP_SECONDS)
    return job.id


def _deployed(console: Console, url: str, folder: Path, rows: int, output: Path) -> dict[str, Any]:
    """What the plan does, as a second process sees it."""
    _say(console, "fetching the plan in a second process")
    with waiting("running the plan"):
        return _deploy(url, f"sqlite:///{folder}/deploy/store.sqlite", rows, output)


def _deploy(url: str, store: str, rows: int, output: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "graph_autofusion.cli.demo_deploy"]
    command += ["--service", url, "--store", store, "--rows", str(rows), "--output", str(output)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"the second process ended with status {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@contextmanager
def _service(store: str, log: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A service of our own, its address, and how to wait until it has a device; it is stopped at
    the end, whatever happens, SIGKILL included."""
    parent, port = os.getpid(), _free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "graph_autofusion.cli", "serve", "--db", store]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as sink:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            preexec_fn=lambda: end_with_parent(parent),
        )
        try:
            yield url, lambda: _await_ready(child, url, log)
        finally:
            _stop(child)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_ready(child: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise Unavailable(f"the service ended at once: {_last_words(log)}")
        try:
            with Client(url) as client:
                if client.devices():
                    return
        except GafError:
            time.sleep(0.2)
            continue
        time.sleep(0.2)
    raise Unavailable(
        f"the service has no device after {_START_SECONDS:.0f} s; it said: {_last_words(log)}"
    )


def _last_words(log: Path) -> str:
    """The end of a log whose folder goes with the demo."""
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-5:]) or "none"


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _say(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def _show(console: Console, facts: dict[str, Any]) -> None:
    report = facts["report"]
    lines = [
        "",
        f"before: {facts['before_us'] / 1e3:.2f} ms (eager)",
        *_gain(facts),
        f"maximum error: {facts['max_error']:.1e}",
        f"fetched and ready in {facts['optimize_seconds']:.2f} s, capture included: "
        f"cache {report['cache']}, {report['trials']} trials",
        "",
        *_fused(report),
        *unfused_lines((u["op"], u["code"], u["sentence"]) for u in report["unfused"]),
        *(["not fused: nothing"] if not report["unfused"] else []),
        f"pictures: {', '.join(facts['pictures'])}",
    ]
    for line in lines:
        _say(console, line)


def _gain(facts: dict[str, Any]) -> list[str]:
    """What the plan brings, where it is used."""
    reason, after_ms = facts["report"]["reason"], facts["after_us"] / 1e3
    if reason:
        return [f"after:  {after_ms:.2f} ms ({reason})"]
    return [
        f"after:  {after_ms:.2f} ms (plan from the service, second process)",
        f"speedup: {facts['speedup']:.2f}x",
    ]


def _fused(report: dict[str, Any]) -> list[str]:
    """The kernels that are used and hold several ops."""
    if report["reason"]:
        return []
    return [
        f"fused: {' + '.join(group['ops'])}  [{group['template']}]"
        for group in report["groups"]
        if len(group["ops"]) > 1 and not group["template"].startswith("framework")
    ]
