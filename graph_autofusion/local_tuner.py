"""Tunes a program in a child process of its own.

SQL, Ray and Optuna never enter the user's process: `python -P -m tuner.local` opens the store, runs
the search and leaves a signed bundle in the bundle cache. Its events come back as JSON lines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from graph_autofusion.paths import bundle_cache_root, default_store
from kernel_gen.codec import to_json
from kernel_gen.errors import Unavailable
from kernel_gen.ir.graph import Graph
from kernel_gen.records import JobRequest

OnEvent = Callable[[dict[str, Any]], None]
_GRACE_SECONDS = 20.0


def tune_locally(graph: Graph, request: JobRequest, store: str | None, on_event: OnEvent) -> None:
    """Runs the search for `request` and returns when its plan is in the bundle cache.

    `on_event` sees each event: a mapping with `kind` and the event's data. Ctrl-C cancels the
    search (what it has found is kept) and is raised again. Raises Unavailable with the child's last
    words where it fails.
    """
    with tempfile.TemporaryDirectory(prefix="gaf-tune-") as folder:
        graph_file, request_file = Path(folder, "graph.json"), Path(folder, "request.json")
        graph_file.write_text(graph.to_json(), encoding="utf-8")
        request_file.write_text(to_json(request), encoding="utf-8")
        command = [
            *(sys.executable, "-P", "-m", "tuner.local"),
            *("--store", store or default_store()),
            *("--cache", str(bundle_cache_root(store))),
            *("--graph", str(graph_file), "--request", str(request_file)),
        ]
        with Path(folder, "log").open("w+b") as log:
            _run(command, log.fileno(), on_event)


def _run(command: list[str], log: int, on_event: OnEvent) -> None:
    reader, writer = os.pipe()
    # A process group of its own: Ctrl-C reaches the child through us, once.
    child = subprocess.Popen(
        [*command, "--events-fd", str(writer)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(writer,),
        start_new_session=True,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
    )
    os.close(writer)
    try:
        for event in _events(reader):
            on_event(event)
        status = child.wait()
    except BaseException:
        _stop(child)
        raise
    if status:
        raise Unavailable(f"the tuner ended with status {status}: {_last_words(log)}")


def _events(reader: int) -> Iterator[dict[str, Any]]:
    with os.fdopen(reader, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _last_words(log: int, limit: int = 2000) -> str:
    size = os.fstat(log).st_size
    text = os.pread(log, limit, max(0, size - limit)).decode(errors="replace").strip()
    return text.splitlines()[-1] if text else "no message"
