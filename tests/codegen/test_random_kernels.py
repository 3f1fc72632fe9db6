"""Random graphs through lowering, every template that takes them, random schedules: built in
batches, run on several thread counts, compared with the reference."""

from __future__ import annotations

import random
from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import GraphCase, case_of, is_one_kernel
from tests.strategies import graphs, inputs_for
from tests.strategy_steps import STEPS

LOWERED = [step for step in STEPS if step != "convolution"]  # the library's
Drawn = tuple[Graph, Sequence[np.ndarray]]


def drawn(count: int, number: int, max_nodes: int) -> list[Drawn]:
    """Random graphs with inputs; drawn together, so that their kernels are built together."""
    found: list[Drawn] = []

    @seed(number)
    @settings(max_examples=count, database=None, phases=[Phase.generate], deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        graph = data.draw(graphs(max_nodes=max_nodes, steps=LOWERED, strided=True))
        found.append((graph, data.draw(inputs_for(graph))))

    collect()
    return [(graph, inputs) for graph, inputs in found if graph.nodes]


@pytest.mark.parametrize("max_nodes", [2, 5, 10])
def test_random_graphs(compiler: Compiler, level: Target, max_nodes: int) -> None:
    number = max_nodes + level.vector_bytes
    assert check_random_graphs(compiler, level, 20, number, max_nodes) >= 20


def check_random_graphs(
    compiler: Compiler, level: Target, count: int, number: int, max_nodes: int
) -> int:
    """Checks kernels of `count` random graphs drawn from seed `number`; how many there were."""
    rng = random.Random(number)
    bench, cases = KernelBench(compiler, level), list[GraphCase]()
    for graph, inputs in drawn(count, number, max_nodes):
        if not is_one_kernel(graph):
            continue
        case = case_of(graph, inputs)
        for template in bench.taking(case.lowered.nest):
            known = len(bench.candidates)
            bench.add_random(case.lowered.nest, rng, template)
            cases += [case] * (len(bench.candidates) - known)
    for kernel, case, candidate in zip(bench.build(), cases, bench.candidates, strict=True):
        for threads in (1, 2, 3):
            try:
                case.check(kernel, threads)
            except AssertionError as wrong:
                wrong.add_note(f"{candidate.template} {dict(candidate.point)}, {threads} threads")
                wrong.add_note(case.graph.to_json())
                raise
    return len(cases)
