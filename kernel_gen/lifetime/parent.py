"""Child processes that end with their parent, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """In a child of the process `parent`: signal `number` comes when that ends, or at once if it
    has ended already.

    Linux ties this to the thread that started the child, which must therefore wait for it.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)
