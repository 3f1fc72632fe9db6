"""Left operands that are read through pointers: windows of images whose channels are innermost."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from kernel_gen.codegen.cpu.matmul import MatmulTemplate
from kernel_gen.errors import Refusal
from kernel_gen.fusion.channels_last import innermost
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import static_shape
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import LoadedKernel
from kernel_gen.schedule.schedule import Choice
from tests.codegen.kernel_graphs import GraphCase, case_of, tensor
from tests.codegen.test_convolution_kernels import check

TEMPLATE = MatmulTemplate()
PLAIN = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
POINTS: list[dict[str, Choice]] = [
    {"tile": "3x1", "kc": 1000, "split": "rows", "walk": "straight"},
    {"tile": "2x2", "kc": 8, "split": "rows", "walk": "turned"},  # runs of 11 steps are cut
    {"tile": "4x1", "kc": 1000, "split": "cols", "walk": "turned"},
]


def image(
    shape: tuple[int, ...],
    weight: tuple[int, ...],
    dtype: DType,
    *,
    last: bool = True,
    **how: object,
) -> Graph:
    """A convolution with a bias, channels of the image innermost, and of the result if `last`."""
    b = GraphBuilder()
    x = b.input(tensor(*shape, dtype=dtype))
    w = b.input(tensor(*weight, dtype=dtype), InputKind.PARAMETER)
    bias = b.input(tensor(weight[0], dtype=dtype), InputKind.PARAMETER)
    y = b.op("convolution", x, w, bias, **{**PLAIN, **how})
    b.output(y)
    graph = b.build()
    values = list(graph.values)
    for value in (x, y) if last else (x,):
        values[value] = innermost(graph.type_of(value), 1)
    return dataclasses.replace(graph, values=tuple(values))


CASES = {
    "padded": image((4, 11, 5, 6), (18, 11, 3, 3), DType.F32, padding=(1, 1)),
    "apart": image((2, 9, 9, 8), (5, 9, 2, 3), DType.F32, padding=(2, 3), dilation=(3, 2)),
    "strided": image((3, 8, 6, 7), (20, 8, 3, 3), DType.F64, padding=(1, 1), stride=(2, 2)),
    "result not": image((4, 11, 5, 6), (18, 11, 3, 3), DType.F32, last=False, padding=(1, 1)),
    "some elements": image((2, 12, 7, 5), (9, 12, 1, 1), DType.F32, stride=(2, 2)),
}


def inputs(graph: Graph, *, finite: bool) -> list[np.ndarray]:
    """Random ones; unless `finite`, with an infinite weight, which makes NaN of zeros beside the
    image."""
    rng = np.random.default_rng(4)
    found = []
    for item in graph.inputs:
        kind = graph.type_of(item.value)
        values = rng.standard_normal(static_shape(kind.shape)).astype(numpy_dtype(kind.dtype))
        found.append(values)
    if not finite:
        found[1].flat[0] = np.inf
    return found


def kernels(case: GraphCase, level: Target, compiler: Compiler) -> list[LoadedKernel]:
    nest = case.lowered.nest
    space = TEMPLATE.space(nest, level)
    known = {p.name for p in space.parameters}
    sources = []
    for number, changes in enumerate(POINTS):
        kept = {name: choice for name, choice in changes.items() if name in known}
        point = {**dict(space.seeds[0]), "left": "pointers", **kept}
        schedule = TEMPLATE.schedule(nest, level, point)
        assert not isinstance(schedule, Refusal), schedule
        sources.append(TEMPLATE.generate(nest, level, schedule, f"pointers{number}"))
    built = compiler.compile_texts([source.files[0] for source in sources], level)
    assert not isinstance(built, Failure), built.message
    return [LoadedKernel(compiler.path_of(built), source, nest) for source in sources]


@pytest.mark.parametrize("name", CASES)
def test_kernels_equal_the_reference(name: str, level: Target, compiler: Compiler) -> None:
    graph = CASES[name]
    finite, infinite = (case_of(graph, inputs(graph, finite=whole)) for whole in (True, False))
    for kernel in kernels(finite, level, compiler):
        for case in (finite, infinite):
            for threads in (1, 3):
                check(case, kernel, threads)


def test_only_what_lies_evenly_is_pointed_at(level: Target) -> None:
    channels_first = dataclasses.replace(
        CASES["padded"], values=tuple(
            dataclasses.replace(value, strides=None) for value in CASES["padded"].values
        )
    )  # fmt: skip
    for graph, offered in ((CASES["padded"], True), (channels_first, False)):
        space = TEMPLATE.space(case_of(graph).lowered.nest, level)
        (left,) = (p.choices for p in space.parameters if p.name == "left")
        assert ("pointers" in left) is offered
        assert any(p.name == "walk" for p in space.parameters) is offered


def test_rows_are_turned_behind_pointers_only(level: Target) -> None:
    nest = case_of(CASES["padded"]).lowered.nest
    seed = dict(TEMPLATE.space(nest, level).seeds[0])
    refused = TEMPLATE.schedule(nest, level, {**seed, "left": "call", "walk": "turned"})
    assert isinstance(refused, Refusal)
    assert refused.code == "operand-layout"
