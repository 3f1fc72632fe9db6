"""How the framework is timed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from tuner_jobs import add_relu_graph

from kernel_gen.frontend import capture
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from tests.models.forced import forced_plan
from tuner.child.contest import GraphTask
from tuner.child.protocol import FRAMEWORK_ERROR, QUICK
from tuner.child.torch_parts import check_plan, time_graph
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


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: torch.linalg.cholesky(x) * 2, (3, 8, 8)),
        (lambda x: torch.multinomial(x, 4) + 1, (5, 16)),
        (lambda x: torch.bernoulli(x).relu(), (6, 6)),
    ],
    ids=["cholesky", "multinomial", "bernoulli"],
)
def test_ops_with_demands_on_their_operands_are_timed(
    function: Callable[[torch.Tensor], torch.Tensor],
    shape: tuple[int, ...],
    kept_compiler: Compiler,
) -> None:
    graph = capture(function, (torch.rand(shape),)).graph
    found = time_graph(graph, 1, QUICK)
    assert not isinstance(found, Failure), found.message
    assert check_plan(graph, forced_plan(graph, kept_compiler), 1, lambda stage: None) is None


def test_what_no_drawn_values_satisfy_is_a_failure() -> None:
    def singular(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.cholesky(x * 0 - 1)

    found = time_graph(capture(singular, (torch.rand(4, 4),)).graph, 1, QUICK)
    assert isinstance(found, Failure)
    assert found.code == FRAMEWORK_ERROR
