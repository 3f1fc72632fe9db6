"""Random graphs through the CPU back end: `python -m tests.soak.fuzz --graphs 5000`.

Each seed is a graph; batches of them run in processes of their own, so that a crash is a failure of
one seed. What is done is kept in the output folder: `--resume` goes on after an end of any kind. A
failure leaves a folder with its graph, its inputs and the smallest part of it that fails.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kernel_gen.errors import InvalidInput
from kernel_gen.runtime.host import host_target
from tests.soak.fuzz.run import Run

_LEVELS = ("x86-64", "x86-64-v3", "x86-64-v4", "armv8-neon")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.soak.fuzz", description=__doc__)
    parser.add_argument("--graphs", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="batches side by side")
    parser.add_argument("--batch", type=int, default=25, help="graphs for one run of the compiler")
    parser.add_argument("--output", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--resume", action="store_true", help="leave out what is done already")
    given = parser.parse_args()
    run = Run(given.output, _levels(), given.batch, resume=given.resume)
    try:
        run.all(range(given.first, given.first + given.graphs), given.jobs)
    except KeyboardInterrupt:
        print("\nstopped; --resume goes on", file=sys.stderr)
        return 130
    print(run.summary())
    return 1 if run.failed else 0


def _levels() -> list[str]:
    """Instruction-set levels of this machine; batches take turns."""
    found: list[str] = []
    for isa in _LEVELS:
        try:
            host_target(isa)
        except InvalidInput:
            continue
        found.append(isa)
    return found


if __name__ == "__main__":
    sys.exit(main())
