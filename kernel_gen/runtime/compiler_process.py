"""One run of a compiler: what it says when it fails, and its whole end when it takes too long.

A compiler is a driver that starts others. Killing the driver alone leaves them working, on cores
where kernels are timed; so a run is a process group of its own, and is killed whole.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernel_gen.records import Failure, Stage

_MESSAGE_CHARS = 4000  # of a compiler's complaint that a Failure keeps


def run_compiler(
    command: Sequence[str], work: Path, timeout_seconds: float, *, cwd: Path | None = None
) -> Failure | None:
    """Runs `command` with its temporary files in `work`; None if it succeeds."""
    environment = {**os.environ, "TMPDIR": str(work), "LC_ALL": "C"}
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, errors="replace", env=environment, cwd=cwd, process_group=0,
        ) as child:  # fmt: skip
            complaint = _complaint(child, timeout_seconds)
    except subprocess.TimeoutExpired:
        return Failure(Stage.TIMEOUT, "build-timeout", f"no object after {timeout_seconds:g} s")
    except OSError as error:
        return Failure(Stage.BUILD, "compiler-failed", str(error))
    if child.returncode == 0:
        return None
    message = complaint.replace(f"{work}/", "")[:_MESSAGE_CHARS]
    return Failure(Stage.BUILD, "compile-error", message or f"exit status {child.returncode}")


def _complaint(child: subprocess.Popen[str], timeout_seconds: float) -> str:
    try:
        return child.communicate(timeout=timeout_seconds)[1]
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # a terminal's Ctrl-C is for us alone
        os.killpg(child.pid, signal.SIGKILL)
        raise
