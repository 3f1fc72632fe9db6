"""How the framework is timed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tuner_jobs import add_relu_graph

from tuner.child.contest import GraphTask
from tuner.devices.program_bench import PlanBench

# Faults of filling a block of 64 MiB, the second time that malloc gives one.
FAULTS = """
import ctypes, resource
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
size = 64 << 20
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(size)))
    libc.memset(block, 1, ctypes.c_size_t(size))
    libc.free(block)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def environment_of_children() -> dict[str, str]:
    bench = PlanBench((0,))
    try:
        bench.time_graphs([GraphTask(add_relu_graph())])
        items = Path(f"/proc/{bench.child_pid}/environ").read_text().split("\0")
    finally:
        bench.close()
    return {name: value for name, _, value in (item.partition("=") for item in items if item)}


def faults(environment: Mapping[str, str]) -> int:
    command = [sys.executable, "-c", FAULTS]
    return int(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


def test_the_framework_need_not_fault_its_outputs_in_again() -> None:
    environment = environment_of_children()
    plain = {name: value for name, value in environment.items() if not name.startswith("MALLOC_")}
    assert faults(environment) < faults(plain) / 10
