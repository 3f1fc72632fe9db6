"""Tunes a program in a child process of its own.

SQL, Ray and Optuna never enter the user's process: `python -P -m tuner.local` opens the store, runs
the search and leaves a signed bundle in the bundle cache. Its events come back as JSON lines.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import kernel_gen
from graph_autofusion.paths import absolute_store, bundle_cache_root, default_store
from graph_autofusion.progress import OnEvent
from kernel_gen.codec import to_json
from kernel_gen.errors import GafError, InvalidInput, Unavailable
from kernel_gen.ir.graph import Graph
from kernel_gen.lifetime.room import full_folders
from kernel_gen.lifetime.scratch import Scratch, sweep
from kernel_gen.records import JobRequest

_GRACE_SECONDS = 20.0
_EXIT_INVALID, _EXIT_UNAVAILABLE, _EXIT_FAILED = 2, 3, 4  # of `tuner.local`
_KILL_SECONDS = 0.02  # between two looks at what is killed
_MARK = "GAF_SEARCH"  # in the environment of all processes of one search
log = logging.getLogger("graph_autofusion")


def tune_locally(graph: Graph, request: JobRequest, store: str | None, on_event: OnEvent) -> None:
    """Runs the search for `request` and returns when its plan is in the bundle cache.

    `on_event` sees each event: a mapping with `kind` and the event's data. Ctrl-C, and a handler of
    the application that exits, cancel the search (what it has found is kept); that is logged and
    raised again. Raises InvalidInput for a program that the framework itself refuses, and
    Unavailable, with the child's last words, where the search fails otherwise.
    """
    cache = bundle_cache_root(store)
    try:
        _tune_in_child(graph, request, store, cache, on_event)
    except (Unavailable, OSError) as error:
        said = f"no search here: {error}" if isinstance(error, OSError) else str(error)
        raise Unavailable(said + _without_room(cache)) from error


def _tune_in_child(
    graph: Graph, request: JobRequest, store: str | None, cache: Path, on_event: OnEvent
) -> None:
    with Scratch("tune") as folder:
        graph_file, request_file = folder / "graph.json", folder / "request.json"
        graph_file.write_text(graph.to_json(), encoding="utf-8")
        request_file.write_text(to_json(request), encoding="utf-8")
        command = [
            *(sys.executable, "-P", "-m", "tuner.local"),
            *("--store", absolute_store(store or default_store())),
            *("--cache", str(cache)),
            *("--graph", str(graph_file), "--request", str(request_file)),
        ]
        with (folder / "log").open("w+b") as words:
            try:
                _run(command, folder, words.fileno(), on_event)
            except (KeyboardInterrupt, SystemExit):
                log.warning("stopped; what was measured is kept and helps the next search")
                raise


def _run(command: list[str], folder: Path, words: int, on_event: OnEvent) -> None:
    reader, writer = os.pipe()
    mark = uuid.uuid4().hex
    # A process group of its own: Ctrl-C reaches the child through us, once. Another folder: Ray's
    # workers import from the one they are started in, where the application's modules lie.
    child = subprocess.Popen(
        [*command, "--events-fd", str(writer), "--parent", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=words,
        stderr=words,
        pass_fds=(writer,),
        start_new_session=True,
        cwd=folder,
        env={**_environment(os.environ), _MARK: mark},
    )
    os.close(writer)
    try:
        for event in _events(reader):
            on_event(event)
        status = child.wait()
    except BaseException:
        _stop(child)
        _kill_marked(mark)
        sweep(folder.parent)
        raise
    if status:
        raise _failure(status, _last_words(words))


def _without_room(cache: Path) -> str:
    """Names the folders of a search that are full: what broke off seldom says where it wrote."""
    full = full_folders((Path(tempfile.gettempdir()), cache, Path("/dev/shm")))
    return f" (no space is left in {', '.join(map(str, full))})" if full else ""


def _failure(status: int, words: str) -> GafError:
    """What a search that ended with `status` (of `tuner.local`, or minus a signal) means to the
    caller; `words` were its last."""
    if status == _EXIT_INVALID:
        return InvalidInput(words)
    if status == _EXIT_UNAVAILABLE:
        return Unavailable(f"no search here: {words}")
    if status == _EXIT_FAILED:
        return Unavailable(f"the search failed: {words}")
    if status < 0:
        signal_name = signal.Signals(-status).name
        return Unavailable(
            f"the search was killed ({signal_name}): is there memory enough? At last: {words}"
        )
    return Unavailable(f"the search broke off: {words}")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """The child's environment: it finds this project's `tuner` and `db` before modules of the
    application that have the same names, and starts a Ray of its own."""
    found = dict(given)
    found.pop("RAY_ADDRESS", None)
    root = str(Path(kernel_gen.__file__).parents[1])
    inherited = found.get("PYTHONPATH")
    if inherited or "site-packages" not in root:
        found["PYTHONPATH"] = os.pathsep.join((root, inherited)) if inherited else root
    return found


def _events(reader: int) -> Iterator[dict[str, Any]]:
    with os.fdopen(reader, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Lets the child end its search; kills it and all it has started if that takes too long, or at
    a second Ctrl-C."""
    child.terminate()
    try:
        child.wait(_GRACE_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _kill_marked(mark: str) -> None:
    """Kills what a cancelled search has left, and waits for its end: Ray's servers, if it was cut
    while they started, and processes that measure, which may not have removed their folders yet."""
    end = time.monotonic() + _GRACE_SECONDS
    while (left := _marked(mark)) and time.monotonic() < end:
        for process in left:
            with suppress(OSError):  # it has ended
                os.kill(process, signal.SIGKILL)
        time.sleep(_KILL_SECONDS)


def _marked(mark: str) -> list[int]:
    needle = f"{_MARK}={mark}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if needle in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
    return found


def _last_words(words: int, limit: int = 2000) -> str:
    size = os.fstat(words).st_size
    text = os.pread(words, limit, max(0, size - limit)).decode(errors="replace").strip()
    return text.splitlines()[-1] if text else "no message"
