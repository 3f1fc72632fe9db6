"""A small forking server: a clean, single-threaded process from which children are forked.

    device process ──(control socket)── zygote ──fork── child, child, …

Forking from a process with threads (Ray's, torch's) is unsafe and slow; the zygote has none. It
imports what children need once, so that a child replaces a crashed one within milliseconds. When
the device process dies, however it does, the control socket closes, the zygote ends, and the kernel
kills its children (PR_SET_PDEATHSIG). It also removes the device's scratch folder then.

Control protocol, one pickled tuple each: ("fork", cores) followed by the child's socket → pid;
("wait", pid) → wait status.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NoReturn

from kernel_gen.collector import collect_seldom
from kernel_gen.lifetime.parent import end_with_parent


def main(arguments: Sequence[str]) -> None:
    """`python -m tuner.child.zygote CONTROL_FD SCRATCH_DIR [MODULE…]`: until the socket closes."""
    control_fd, scratch, *preload = arguments
    control = socket.socket(fileno=int(control_fd))
    collect_seldom()
    for name in ("tuner.child.process", *preload):
        importlib.import_module(name)
    gc.freeze()  # children share the pages of what is here, and look for no garbage in it
    try:
        _serve(control)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _serve(control: socket.socket) -> None:
    connection = Connection(os.dup(control.fileno()))
    connection.send("ready")
    while True:
        try:
            command, value = connection.recv()
        except (EOFError, OSError):
            return
        if command == "fork":
            _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            connection.send(_fork(descriptors[0], value, connection, control))
        else:
            connection.send(os.waitpid(value, 0)[1])


def _fork(
    descriptor: int, cores: Sequence[int], connection: Connection, control: socket.socket
) -> int:
    zygote = os.getpid()
    pid = os.fork()
    if pid == 0:
        connection.close()
        control.close()
        _become_child(descriptor, cores, zygote)
    os.close(descriptor)
    return pid


def _become_child(descriptor: int, cores: Sequence[int], zygote: int) -> NoReturn:
    """Serves requests, then ends without running the zygote's clean-up."""
    from tuner.child.process import serve

    code = 1
    try:
        end_with_parent(zygote, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if cores:
            os.sched_setaffinity(0, cores)
        serve(socket.socket(fileno=descriptor))
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
