"""The device's side of its child process: requests, stages, time-outs, respawn."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from types import MappingProxyType, TracebackType

from kernel_gen.errors import Unavailable
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.records import Failure, Stage
from tuner.child.messages import Done, Reached

_LOAD_TIMEOUT_S = 60.0  # a stage before execution: dlopen, packing of constants, page faults
_START_TIMEOUT_S = 120.0
_ASK_SECONDS = 0.5  # between two questions whether to go on
# Threads are an argument of every kernel; a limit in the environment would shrink torch's pool.
_DROPPED_ENVIRONMENT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONSTARTUP")


class _Child:
    """One forked child: its pid and the connection to it."""

    def __init__(self, pid: int, sock: socket.socket) -> None:
        self.pid = pid
        self.socket = sock
        self.connection = Connection(os.dup(sock.fileno()))
        self.opened: set[str] = set()

    def close(self) -> None:
        self.connection.close()
        self.socket.close()


class Runner:
    """Owns the zygote and at most one child at a time. Not thread-safe.

    `cores` pins children (all cores if empty); `preload` names modules the zygote imports besides
    the child's own; `environment` is what they have besides this process's. A zygote or
    child that something else has killed is replaced.
    """

    def __init__(
        self,
        cores: Sequence[int] = (),
        preload: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._cores, self._preload = tuple(cores), tuple(preload)
        self._environment = dict(environment)
        self._child: _Child | None = None
        self._ready = False
        self._check_stop: Callable[[], None] = lambda: None
        self._scratch = Scratch("device")
        self.scratch = self._scratch.path
        self._start_zygote()

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self, key: str, message: object, handle: int) -> None:
        """Send a block once to each child that needs it; `handle` is its memfd."""
        try:
            self._send_block(key, message, handle)
        except OSError:  # the child was killed while it waited
            self._discard()
            self._send_block(key, message, handle)

    def forget(self, keys: Sequence[str]) -> None:
        """The blocks of `keys` are gone: a fresh child takes the place of one that maps them."""
        if self._child is not None and self._child.opened & set(keys):
            self._discard()

    def call(self, request: object, timeout_s: float) -> object | Failure:
        """The child's answer; a Failure if it died or exceeded `timeout_s` in a stage."""
        child = self._current()
        stage = Stage.LOAD
        try:
            child.connection.send(request)
            while True:
                limit = _LOAD_TIMEOUT_S if stage is Stage.LOAD else timeout_s
                if not self._answers(child, limit):
                    self._discard()
                    return _hang(stage, limit)
                answer = child.connection.recv()
                if isinstance(answer, Reached):
                    stage = answer.stage
                elif isinstance(answer, Done):
                    return answer.result
        except (EOFError, OSError):
            return _crash(stage, self._discard())

    def watch(self, check_stop: Callable[[], None]) -> None:
        """What is asked every while as a call waits; what it raises passes through, and the child
        is ended."""
        self._check_stop = check_stop

    def _answers(self, child: _Child, limit_s: float) -> bool:
        """Whether the child says something in time."""
        end = time.monotonic() + limit_s
        while not child.connection.poll(max(0.0, min(_ASK_SECONDS, end - time.monotonic()))):
            if time.monotonic() >= end:
                return False
            try:
                self._check_stop()
            except BaseException:
                self._discard()
                raise
        return True

    def await_start(self) -> None:
        """Wait until the zygote has imported what children need; raises Unavailable if it dies."""
        if self._ready:
            return
        deadline = time.monotonic() + _START_TIMEOUT_S
        try:
            if not self._control.poll(deadline - time.monotonic()):
                raise Unavailable(f"the measuring process did not start in {_START_TIMEOUT_S} s")
            self._control.recv()
        except EOFError:
            errors = (self.scratch / "stderr.txt").read_text(errors="replace")[-2000:]
            raise Unavailable(f"the measuring process did not start: {errors}") from None
        self._ready = True

    @property
    def child_pid(self) -> int | None:
        """Pid of the living child, if there is one."""
        return None if self._child is None else self._child.pid

    def close(self) -> None:
        """End the child and the zygote; idempotent."""
        if self._child is not None:
            self._discard()
        self._end_zygote()
        self._scratch.close()

    def _send_block(self, key: str, message: object, handle: int) -> None:
        child = self._current()
        if key in child.opened:
            return
        child.connection.send(message)
        socket.send_fds(child.socket, [b"\0"], [handle])
        child.opened.add(key)

    def _end_zygote(self) -> None:
        self._control.close()
        self._socket.close()
        try:
            self._zygote.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._zygote.kill()
            self._zygote.wait()

    def _start_zygote(self) -> None:
        ours, theirs = socket.socketpair()
        environment = {k: v for k, v in os.environ.items() if k not in _DROPPED_ENVIRONMENT}
        environment |= self._environment
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        arguments = [str(theirs.fileno()), str(self.scratch), *self._preload]
        with (self.scratch / "stderr.txt").open("wb") as errors:
            self._zygote = subprocess.Popen(
                [sys.executable, "-P", "-m", "tuner.child.zygote", *arguments],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                start_new_session=True,  # a terminal's Ctrl-C is the driver's business
            )
        theirs.close()
        self._socket = ours
        self._control = Connection(os.dup(ours.fileno()))
        self._ready = False

    def _current(self) -> _Child:
        if self._child is None:
            try:
                self._child = self._fork()
            except (EOFError, OSError):  # the zygote was killed
                self._end_zygote()
                self._start_zygote()
                self._child = self._fork_again()
        return self._child

    def _fork_again(self) -> _Child:
        try:
            return self._fork()
        except (EOFError, OSError) as error:
            raise Unavailable(f"the measuring process was lost twice: {error}") from error

    def _fork(self) -> _Child:
        self.await_start()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._control.send(("fork", self._cores))
                socket.send_fds(self._socket, [b"\0"], [theirs.fileno()])
            return _Child(int(self._control.recv()), ours)
        except (EOFError, OSError):
            ours.close()
            raise

    def _discard(self) -> int:
        """End the current child; its wait status."""
        child, self._child = self._child, None
        if child is None:
            return 0
        try:
            if self._zygote.poll() is None:
                os.kill(child.pid, signal.SIGKILL)  # of no effect on one that died by itself
                self._control.send(("wait", child.pid))
                return int(self._control.recv())
        except (EOFError, OSError):
            self._zygote.wait()
        finally:
            child.close()
        return int(signal.SIGKILL)  # the zygote was killed, and with it its children


def _hang(stage: Stage, limit: float) -> Failure:
    return Failure(
        Stage.TIMEOUT, "kernel-hang", f"no result {limit:g} s after the start of stage {stage}"
    )


def _crash(stage: Stage, status: int) -> Failure:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name
        return Failure(stage, "kernel-crash", f"the kernel died of {name} in stage {stage}")
    code = os.waitstatus_to_exitcode(status)
    return Failure(stage, "kernel-exit", f"the process ended with code {code} in stage {stage}")
