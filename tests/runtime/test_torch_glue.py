"""Plans run through torch: values, outputs, threads, mutation, aliases."""

from __future__ import annotations

import pytest
import torch

from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import BoundPlan, TorchPlan
from tests.runtime.small_plans import chain_graph, plan_of
from tests.runtime.torch_nodes import run_nodes


def bind(plan: Plan, *constants: torch.Tensor) -> BoundPlan:
    return TorchPlan(plan, run_nodes).bind(constants)


@pytest.mark.parametrize("packed", [(), (2,)])
@pytest.mark.parametrize("scratch", [0, 192])
def test_chain_of_kernels(compiler: Compiler, packed: tuple[int, ...], scratch: int):
    plan = plan_of(chain_graph(), compiler, packed=packed, scratch_bytes=scratch)
    assert len(plan.layout.segments) == 1
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan, w)
    for n_threads in (1, 3, 2):
        (result,) = bound([x, y], n_threads)
        assert torch.equal(result, (x + y) * w - x)
    assert bound.snapshots == ({0} if packed else set())
