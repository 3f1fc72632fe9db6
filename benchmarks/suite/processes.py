"""Starting and ending the measuring processes of one workload."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from benchmarks.suite import zygote
from benchmarks.suite.worker import Order

MALLOC: dict[str, dict[str, str]] = {
    "default": {},
    "no-trim": {"MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_MMAP_THRESHOLD_": str(1 << 32)},
}
"""glibc gives freed memory back to the system by default, so that fresh outputs cost page faults
in each call; some users turn that off. Contenders are timed both ways."""

_CONNECT_SECONDS = 60.0
_END_SECONDS = 25.0
_LAST_WORDS = 300


class Gone(Exception):
    """A measuring process ended, or did not answer in time; the message says what it said last."""


class Zygote:
    """The forking process of one malloc setting."""

    def __init__(self, setting: str, threads: int, folder: Path) -> None:
        self._folder, self._setting, self._count = folder, setting, 0
        environment = {
            **os.environ,
            **MALLOC[setting],
            "OMP_NUM_THREADS": str(threads),
            "NPROC": str(threads),
            "HF_HUB_OFFLINE": "1",
        }
        self._child = subprocess.Popen(
            zygote.command(threads),
            stdin=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=zygote.root(),
            start_new_session=True,  # Ctrl-C is the harness's to handle
        )

    def start(self, order: Order) -> Worker:
        """Forks a process for `order`; its facts are to be read with `Worker.facts`."""
        self._count += 1
        stem = f"{self._setting}-{self._count}"
        path, log = self._folder / f"{stem}.sock", self._folder / f"{stem}.log"
        values = asdict(order)
        effort = values.pop("effort")
        line = {"order": values, "effort": effort, "socket": str(path), "log": str(log)}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(1)
            listener.settimeout(_CONNECT_SECONDS)
            assert self._child.stdin is not None
            self._child.stdin.write(json.dumps(line) + "\n")
            self._child.stdin.flush()
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                raise Gone(f"no process came up within {_CONNECT_SECONDS:g} s") from None
        return Worker(connection, log)

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


class Zygotes:
    """The forking processes of all malloc settings, for a whole run."""

    def __init__(self, threads: int) -> None:
        with ExitStack() as stack:
            made = tempfile.TemporaryDirectory(prefix="gaf-bench-")
            self.folder = Path(stack.enter_context(made))
            self._each: dict[str, Zygote] = {}
            for setting in MALLOC:
                self._each[setting] = Zygote(setting, threads, self.folder)
                stack.callback(self._each[setting].close)
            self._stack = stack.pop_all()

    def __getitem__(self, setting: str) -> Zygote:
        return self._each[setting]

    def __enter__(self) -> Zygotes:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class Worker:
    """One measuring process, over its socket."""

    def __init__(self, connection: socket.socket, log: Path) -> None:
        self._connection, self._log = connection, log
        self._answers: TextIO = connection.makefile("r")
        connection.settimeout(_CONNECT_SECONDS)
        self._pid = int(self._answer()["pid"])

    def facts(self, seconds: float) -> Mapping[str, Any]:
        """What it says once it is set up, within `seconds`."""
        self._connection.settimeout(seconds)
        facts: dict[str, Any] = self._answer()
        return facts

    def sample(self) -> dict[str, dict[str, float]]:
        """One sample of each of its runs."""
        self._connection.sendall(b"sample\n")
        samples: dict[str, dict[str, float]] = self._answer()
        return samples

    def close(self) -> None:
        """Hangs up and waits for its end; what goes on searching is interrupted, then killed."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._answers.close()
        self._connection.close()
        for number in (signal.SIGINT, signal.SIGKILL):
            if self._ends_within(1.0 if number is signal.SIGINT else _END_SECONDS):
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def _ends_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not Path(f"/proc/{self._pid}").exists():
                return True
            time.sleep(0.01)
        return False

    def _answer(self) -> Any:
        try:
            line = self._answers.readline()
        except TimeoutError:
            seconds = self._connection.gettimeout() or 0.0
            raise Gone(f"no answer within {seconds:g} s") from None
        except OSError as error:
            raise Gone(f"{error}: {self._last_words()}") from None
        if not line:
            raise Gone(f"the process ended: {self._last_words()}")
        return json.loads(line)

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._log.read_text(errors="replace").strip().splitlines()
            fatal = [line for line in lines if line.startswith("Fatal Python error")]
            return (fatal or lines or ["it said nothing"])[-1][:_LAST_WORDS]
        return "it said nothing"
