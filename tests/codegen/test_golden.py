"""Generated text of a few kernels, line by line; `make golden` writes it anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import case_of, single, tensor

FOLDER = Path(__file__).parent / "golden"
TARGET = Target(DeviceKind.CPU, "golden", "x86-64-v3", vector_bytes=32)


def bias_relu() -> Graph:
    b = GraphBuilder()
    x, bias = b.input(tensor(64, 100)), b.input(tensor(100))
    b.output(b.op("relu", b.op("add", x, bias)))
    return b.build()


def transposed_relu() -> Graph:
    b = GraphBuilder()
    b.output(b.op("relu", b.op("permute", b.input(tensor(64, 32)), dims=(1, 0))))
    return b.build()


def causal_attention() -> Graph:
    kinds = [tensor(2, 16, 8), tensor(2, 16, 8), tensor(2, 16, 8)]
    return single("attention", *kinds, scale=0.25, causal=True, mask=False)


KERNELS = {
    "attention": (causal_attention, "attention"),
    "bias_relu": (bias_relu, "pointwise"),
    "transposed_relu": (transposed_relu, "pointwise"),
    "softmax": (lambda: single("softmax", tensor(64, 100), dim=1), "row"),
    "column_sum": (lambda: single("sum", tensor(100, 64), dims=(0,), keepdim=False), "reduce"),
    "product": (lambda: single("matmul", tensor(5, 6), tensor(6, 7)), "loops"),
}


def source_of(name: str) -> KernelSource:
    graph, template = KERNELS[name]
    bench = KernelBench(Compiler(("c++",), "none", FOLDER), TARGET)
    added = bench.add(case_of(graph()).lowered.nest, template)
    assert not isinstance(added, Refusal), added
    return added.source


@pytest.mark.parametrize("name", KERNELS)
def test_text_is_as_recorded(name: str, request: pytest.FixtureRequest) -> None:
    text = source_of(name).files[0][1]
    path = FOLDER / f"{name}.cpp"
    if request.config.getoption("--golden-update", default=False):
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("name", KERNELS)
def test_generation_is_deterministic(name: str) -> None:
    assert source_of(name).digest == source_of(name).digest
