"""The driver's process: started, started again when it dies, stopped with the server."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from kernel_gen.lifetime.parent import end_with_parent

log = logging.getLogger(__name__)

_STOP_SECONDS = 20.0
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_HEALTHY_SECONDS = 60.0  # a driver that lived this long is started again without delay


def driver_command(device: str = "cpu", *, worker: bool) -> list[str]:
    """The command line of a device's job driver, which takes its store from GAF_DB: other users of
    the machine see command lines, and a URL may hold a password."""
    flag = "--worker" if worker else "--no-worker"
    # -P keeps folders of the user's project that are called `db` or `tuner` out of the way.
    return [sys.executable, "-P", "-m", "tuner.driver", flag, "--device", device]


class Supervisor:
    """Keeps one child process alive until `stop`. The child gets SIGTERM when this process dies in
    any way, so that a killed server leaves no driver behind."""

    def __init__(
        self,
        command: Sequence[str],
        on_death: Callable[[int], None] = lambda pid: None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`on_death` hears the process id of a child that ended without being told to;
        `environment` is added to this process's own."""
        self._command = list(command)
        self._environment = {**os.environ, **(environment or {})}
        self._on_death = on_death
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="driver-supervisor")
        self._child: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Begin what `stop` ends, so that several supervisors stop at once."""
        self._stopping.set()

    def stop(self) -> None:
        """End the child in order, by force after 20 s; returns when it has ended."""
        self._stopping.set()
        self._thread.join()

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is no child."""
        child = self._child
        return None if child is None else child.pid

    def _keep_alive(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            started = time.monotonic()
            code = self._run_once()
            if self._stopping.is_set():
                return
            lived = time.monotonic() - started
            pause = _FIRST_PAUSE_SECONDS if lived > _HEALTHY_SECONDS else pause
            log.warning("the driver ended with %s; it is started again in %.1f s", code, pause)
            self._stopping.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _run_once(self) -> int:
        """One life of the child. Runs in the thread that the child's death signal is tied to."""
        parent = os.getpid()
        self._child = child = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            env=self._environment,
            start_new_session=True,  # a terminal's Ctrl-C is for the server, which tells the child
            preexec_fn=lambda: end_with_parent(parent),
        )
        self.starts += 1
        try:
            while child.poll() is None and not self._stopping.is_set():
                self._stopping.wait(0.1)
            died = child.poll() is not None
            code = _end(child)
            if died:
                self._on_death(child.pid)
            return code
        finally:
            self._child = None


def _end(child: subprocess.Popen[bytes]) -> int:
    """The child's exit code, after ending it if it still runs, and what it left in its session."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("the driver did not stop within %.0f s and is killed", _STOP_SECONDS)
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        log.debug("the driver left nothing behind")
    return child.wait()
