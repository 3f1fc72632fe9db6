"""A compiler of kernels for tests: takes CANN's options, builds for the host and the simulator.

`stub.json`, two folders above, says which compiler, headers and libraries that means.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_LAUNCH = re.compile(r"(\w+)<<<(\w+), nullptr, \w+>>>\(([^;]*)\);")
_DECLARED = 'extern "C" void stub_launch(void *, void *const *, int, unsigned);\n'


def _host(text: str) -> str:
    """The launch, which is no C++, as a call of the stub library."""
    call = (
        r"{ void *given[] = {\3}; stub_launch(reinterpret_cast<void *>(\1), given, "
        r"sizeof(given) / sizeof(*given), \2); }"
    )
    changed, count = _LAUNCH.subn(call, text)
    return _DECLARED + changed if count else text


def main(arguments: Sequence[str]) -> int:
    if "--version" in arguments:
        print("stub of bisheng")
        return 0
    settings = json.loads((Path(__file__).parent.parent / "stub.json").read_text())
    if "-xasc" not in arguments or not any(a.startswith("--npu-arch=dav-") for a in arguments):
        print("the stub compiles for NPUs only", file=sys.stderr)
        return 2
    unit = next(Path(a) for a in arguments if a.endswith(".cpp"))
    for file in unit.resolve().parent.glob("*.cpp"):
        file.write_text(_host(file.read_text()))
    kept = [a for a in arguments if a != "-xasc" and not a.startswith(("--npu-arch", "-O"))]
    done = subprocess.run([*settings["command"], "-O1", *kept, *settings["libraries"]], check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
