"""A model file from outside as a graph, in a process of its own with limits.

    python -P -m kernel_gen.frontend.convert onnx|pt2 [--dim NAME=SIZE …] --parent PID < FILE

The answer is a JSON object: `graph`, the graph's canonical JSON, or `error` (the name of an error
of `kernel_gen.errors`) and `message`. Weights of the file are not part of the graph. What a hostile
file can do is end this process: by memory, by time, or by a fault in a parser.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Sequence

from kernel_gen.collector import collect_seldom
from kernel_gen.lifetime.parent import end_with_parent

MEMORY_BYTES = 8 << 30
CPU_SECONDS = 120


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads a file from standard input and writes the answer; status 0 also for a typed error."""
    collect_seldom()
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("onnx", "pt2"))
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--parent", type=int, help="the process this one ends with")
    options = parser.parse_args(arguments)
    if options.parent is not None:
        end_with_parent(options.parent)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    dims = {name: int(size) for name, _, size in (text.partition("=") for text in options.dim)}
    json.dump(answer(options.kind, sys.stdin.buffer.read(), dims), sys.stdout)
    return 0


def answer(kind: str, content: bytes, dims: dict[str, int]) -> dict[str, str]:
    """What the process answers for a file of the kind "onnx" or "pt2"."""
    from kernel_gen.errors import GafError

    try:
        return {"graph": _graph(kind, content, dims)}
    except GafError as error:
        return {"error": type(error).__name__, "message": str(error)}


def _graph(kind: str, content: bytes, dims: dict[str, int]) -> str:
    from kernel_gen.frontend import capture
    from kernel_gen.frontend.files import of_onnx, of_program

    if kind == "onnx":
        file = of_onnx(content)
    else:
        from kernel_gen.frontend.pt2 import read_pt2  # takes a while to load

        file = of_program(read_pt2(content, weights=False), "the archive")
    return capture(file.module, file.example_inputs(dims)).graph.to_json()


if __name__ == "__main__":
    sys.exit(main())
