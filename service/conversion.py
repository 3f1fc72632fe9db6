"""ONNX files and torch.export archives as graphs, converted outside of the API process.

`kernel_gen.frontend.convert` runs in a child with limits on memory and time, so a hostile file
costs a request and no more; and torch stays out of the server.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence

from kernel_gen import errors
from kernel_gen.errors import GafError, InvalidInput, Unavailable

MEDIA_TYPES = {"application/onnx": "onnx", "application/zip": "pt2"}
_AT_ONCE = threading.BoundedSemaphore(2)
_WAIT_SECONDS = 60.0
_RUN_SECONDS = 180.0
_DIM = re.compile(r"[^=]{1,200}=\d{1,9}\Z")


def convert(content: bytes, kind: str, dims: Sequence[str]) -> str:
    """The canonical JSON of a file's graph; `kind` is "onnx" or "pt2", `dims` are `NAME=SIZE`.

    Raises the error of the front end that read the file, and Unavailable if too many are being
    converted.
    """
    for text in dims:
        if not _DIM.match(text):
            raise InvalidInput(f"dim {text[:80]!r}: expected NAME=SIZE, as in batch=8")
    if not _AT_ONCE.acquire(timeout=_WAIT_SECONDS):
        raise Unavailable("too many files are being converted; try again")
    try:
        return _run(content, [kind, *(f"--dim={text}" for text in dims)])
    finally:
        _AT_ONCE.release()


def _run(content: bytes, arguments: Sequence[str]) -> str:
    command = [sys.executable, "-P", "-m", "kernel_gen.frontend.convert"]
    command += [*arguments, "--parent", str(os.getpid())]
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=_RUN_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise InvalidInput(f"converting the file took more than {_RUN_SECONDS:.0f} s") from error
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise InvalidInput(
            f"converting the file ended with status {done.returncode}: "
            f"{words[-1][:300] if words else 'no message'}"
        )
    answer = json.loads(done.stdout)
    if "graph" in answer:
        return str(answer["graph"])
    raise _error(answer["error"], answer["message"])


def _error(name: str, message: str) -> GafError:
    found = getattr(errors, name, InvalidInput)
    known = isinstance(found, type) and issubclass(found, GafError)
    error: GafError = found(message) if known else InvalidInput(message)
    return error
