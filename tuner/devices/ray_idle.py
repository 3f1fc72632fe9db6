"""Stands in for an agent of a local Ray: says its ports, does nothing, and ends with its scheduler.

`python -I -S ray_idle.py FOLDER NODE NAME=PORT…` writes each port into FOLDER/NAME_NODE, where Ray
waits for it. Nothing of this project or of Ray is imported: the point is to cost nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> None:
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    folder, node, *ports = arguments
    for name, port in (given.split("=") for given in ports):
        path = os.path.join(folder, f"{name}_{node}")
        with open(f"{path}.part", "w", encoding="ascii") as file:
            file.write(port)
        os.replace(f"{path}.part", path)
    while os.getppid() == parent:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
