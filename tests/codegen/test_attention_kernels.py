"""Attention kernels against the reference: graphs of all kinds, levels, threads and schedules."""

from __future__ import annotations

import random

import pytest

from kernel_gen.codegen.cpu.attention import AttentionTemplate
from kernel_gen.errors import Refusal
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import LoadedKernel
from tests.codegen.attention_graphs import GRAPHS
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import GraphCase, case_of

TEMPLATE = AttentionTemplate()
Built = list[tuple[str, LoadedKernel, GraphCase]]


@pytest.fixture(scope="module")
def built(compiler: Compiler, level: Target) -> Built:
    """Each graph at its first seed and at a random point, in one shared object."""
    bench, cases = KernelBench(compiler, level), []
    rng = random.Random(1)
    for name, graph in GRAPHS.items():
        case = case_of(graph())
        nest = case.lowered.nest
        refused = TEMPLATE.refuse(nest, level)
        assert refused is None, f"{name}: {refused}"
        space = TEMPLATE.space(nest, level)
        points = [dict(space.seeds[0])]
        points += [{p.name: rng.choice(p.choices) for p in space.parameters} for _ in range(1)]
        for point in points:
            if not isinstance(bench.add_point(nest, TEMPLATE, point), Refusal):
                cases.append((f"{name}: {point}", case))
    kernels = bench.build()
    return [(name, k, case) for (name, case), k in zip(cases, kernels, strict=True)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_kernels_agree_with_the_reference(built: Built, threads: int) -> None:
    assert len(built) > len(GRAPHS)
    for name, kernel, case in built:
        try:
            case.check(kernel, threads)
        except AssertionError as wrong:
            raise AssertionError(f"{name}, {threads} threads: {wrong}") from wrong
