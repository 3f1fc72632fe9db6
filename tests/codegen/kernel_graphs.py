"""Graphs as kernels: lowering whole graphs, running their kernels, comparing with the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernel_gen.errors import Refusal
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.arrays import constant_array
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import BufferRole
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.kernel import LoadedKernel
from tests.codegen.kernel_bench import KernelBench, run_kernel
from tests.strategies import Expected, expected, random_input

F32 = DType.F32


@dataclass(frozen=True)
class GraphCase:
    """A graph as one nest, with inputs."""

    graph: Graph
    lowered: Lowered
    inputs: Sequence[np.ndarray]

    @cached_property
    def expected(self) -> Expected:
        """Computed once for all kernels of the graph."""
        return expected(self.graph, self.inputs)

    def check(self, kernel: LoadedKernel, threads: int = 1) -> None:
        """Runs the kernel and compares all outputs of the graph with the reference."""
        known = {i.value: a for i, a in zip(self.graph.inputs, self.inputs, strict=True)}
        for constant in self.graph.constants:
            kind = self.graph.type_of(constant.value)
            known[constant.value] = constant_array(constant, kind)
        pairs = list(zip(self.lowered.operands, kernel.nest.buffers, strict=True))
        reads = [known[v] for v, b in pairs if b.role is not BufferRole.OUTPUT]
        writes = [v for v, b in pairs if b.role is BufferRole.OUTPUT]
        known.update(zip(writes, run_kernel(kernel, reads, threads), strict=True))
        results = [known[o.value] for o in self.graph.outputs]
        self.expected.assert_matches(results)


def case_of(graph: Graph, inputs: Sequence[np.ndarray] | None = None, seed: int = 0) -> GraphCase:
    """All nodes of the graph as one nest; fails the test if that is refused."""
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal), lowered.sentence
    rng = np.random.default_rng(seed)
    if inputs is None:
        inputs = [random_input(rng, graph.type_of(i.value), i) for i in graph.inputs]
    return GraphCase(graph, lowered, inputs)


def check_all_templates(bench: KernelBench, graphs: Iterable[Graph]) -> None:
    """Each graph as one kernel of each template that takes it, at its first seed."""
    cases = []
    for case in map(case_of, graphs):
        for template in bench.taking(case.lowered.nest):
            assert not isinstance(bench.add(case.lowered.nest, template.name), Refusal)
            cases.append(case)
    for kernel, case in zip(bench.build(), cases, strict=True):
        case.check(kernel, 2)


def is_one_kernel(graph: Graph) -> bool:
    """Whether all nodes may share a kernel: too many statements keep a compiler busy."""
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    return not (isinstance(lowered, Refusal) and lowered.code == "group-too-large")


def tensor(*shape: int, dtype: DType = F32) -> TensorType:
    return TensorType(dtype, shape)


def single(op: str, *operands: TensorType, **attributes: object) -> Graph:
    """A graph of one op on inputs of the given types."""
    b = GraphBuilder()
    b.output(b.op(op, *(b.input(kind) for kind in operands), **attributes))
    return b.build()
