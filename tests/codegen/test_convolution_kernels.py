"""Generated convolutions against the reference: every template, layout and instruction set."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.fusion.channels_last import innermost
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import TensorType, static_shape
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import LoadedKernel
from tests.codegen.kernel_graphs import GraphCase, case_of, tensor

CASES = {
    "pointwise": ((2, 20, 5, 7), (37, 20, 1, 1), {}),
    "strided pointwise": ((2, 20, 5, 7), (9, 20, 1, 1), {"stride": (2, 2)}),
    "3x3": ((2, 11, 7, 9), (19, 11, 3, 3), {"padding": (1, 1)}),
    "stem": ((1, 3, 15, 17), (8, 3, 7, 7), {"stride": (2, 2), "padding": (3, 3)}),
    "dilated": ((1, 16, 9, 9), (8, 16, 3, 3), {"dilation": (2, 3), "padding": (2, 0)}),
    "groups": ((2, 12, 6, 5), (18, 4, 3, 3), {"groups": 3, "padding": (1, 1)}),
    "depthwise": ((2, 19, 7, 21), (19, 1, 3, 3), {"groups": 19, "padding": (1, 1)}),
    "multiplier": ((1, 6, 7, 9), (12, 1, 3, 3), {"groups": 6, "stride": (2, 2)}),
    "large depthwise": ((1, 18, 9, 10), (18, 1, 7, 7), {"groups": 18, "padding": (3, 3)}),
    "1d": ((2, 9, 31), (10, 9, 3), {"padding": (1,)}),
    "3d": ((1, 5, 4, 5, 6), (7, 5, 2, 3, 3), {"padding": (0, 1, 1)}),
}
WAYS_BACK = ("transposed", "gradient")


def graph_of(name: str, *, last: bool) -> Graph:
    """An activated input, the convolution, a residual and hardswish; `last`: channels innermost."""
    x_shape, w_shape, options = CASES[name]
    rank = len(x_shape) - 2
    plain = {"stride": (1,) * rank, "padding": (0,) * rank, "dilation": (1,) * rank, "groups": 1}
    b = GraphBuilder()
    x, w, bias = (
        b.input(tensor(*shape), kind)
        for shape, kind in ((x_shape, InputKind.USER), (w_shape, InputKind.PARAMETER),
                            (w_shape[:1], InputKind.PARAMETER))
    )  # fmt: skip
    y = b.op("convolution", x, w, bias, **{**plain, **options})
    r = b.input(tensor(*b.type_of(y).shape))
    b.output(b.op("hardswish", b.op("add", y, r)))
    graph = b.build()
    values = list(graph.values)
    for value in (x, r, graph.outputs[0].value) if last else ():
        values[value] = innermost(graph.type_of(value), 1)
    if last and w_shape[1] == 1:
        values[w] = innermost(graph.type_of(w), 0)
    return dataclasses.replace(graph, values=tuple(values))


def separable(*, last: bool) -> Graph:
    """A depthwise convolution, an activation, a pointwise convolution."""
    b = GraphBuilder()
    x, w = b.input(tensor(2, 21, 7, 9)), b.input(tensor(21, 1, 3, 3), InputKind.PARAMETER)
    plain = {"stride": (1, 1), "dilation": (1, 1)}
    y = b.op("convolution", x, w, padding=(1, 1), groups=21, **plain)
    pointwise = b.input(tensor(13, 21, 1, 1), InputKind.PARAMETER)
    y = b.op("convolution", b.op("relu6", y), pointwise, padding=(0, 0), groups=1, **plain)
    b.output(y)
    graph = b.build()
    values = list(graph.values)
    for value, dim in ((x, 1), (w, 0), (y, 1)) if last else ():
        values[value] = innermost(graph.type_of(value), dim)
    return dataclasses.replace(graph, values=tuple(values))


def way_back(name: str) -> Graph:
    """A transposed convolution with an activation, or the gradient of a weight."""
    b = GraphBuilder()
    windows = {"stride": (2, 1), "padding": (1, 1), "dilation": (1, 2), "groups": 2}
    x = b.input(tensor(2, 10, 5, 7))
    if name == "gradient":
        given = b.input(tensor(2, 12, 3, 5))
        y = b.op("conv_weight_gradient", x, given, kernel=(3, 3), **windows)
        b.output(b.op("mul", y, b.input(tensor(12, 5, 1, 1))))
    else:
        w, bias = (b.input(tensor(*s), InputKind.PARAMETER) for s in ((10, 9, 3, 3), (18,)))
        y = b.op("conv_transpose", x, w, bias, output_padding=(1, 0), **windows)
        b.output(b.op("relu", y))
    return b.build()


def sources(case: GraphCase, target: Target, seed: str) -> list[KernelSource]:
    """Each template's first guess and a point drawn at random."""
    nest, rng = case.lowered.nest, random.Random(seed)
    found = []
    for template in templates(target):
        if template.refuse(nest, target) is not None:
            continue
        space = template.space(nest, target)
        drawn = {p.name: rng.choice(p.choices) for p in space.parameters}
        for number, point in enumerate((dict(space.seeds[0]), drawn)):
            schedule = template.schedule(nest, target, point)
            if not isinstance(schedule, Refusal):
                symbol = f"{template.name}_{number}"
                found.append(template.generate(nest, target, schedule, symbol))
    return found


def laid_out(array: np.ndarray, type_: TensorType) -> np.ndarray:
    """A copy of `array` with the strides of its type."""
    strides = [stride * array.itemsize for stride in type_.element_strides]
    made = np.lib.stride_tricks.as_strided(np.empty(array.size, array.dtype), array.shape, strides)
    made[...] = array
    return made


def check(case: GraphCase, kernel: LoadedKernel, threads: int) -> None:
    """Runs the kernel on operands in the graph's layouts and compares its result."""
    known = {i.value: a for i, a in zip(case.graph.inputs, case.inputs, strict=True)}
    (result,) = case.graph.outputs
    type_ = case.graph.type_of(result.value)
    empty = np.full(static_shape(type_.shape), np.nan, numpy_dtype(type_.dtype))
    known[result.value] = laid_out(empty, type_)
    operands = [laid_out(known[v], case.graph.type_of(v)) for v in case.lowered.operands[:-1]]
    assert kernel.run([*operands, known[result.value]], threads) == 0
    case.expected.assert_matches([known[result.value]])


@pytest.mark.levels_in_turn
@pytest.mark.parametrize("last", [False, True], ids=["nchw", "nhwc"])
@pytest.mark.parametrize("name", [*CASES, "separable"])
def test_kernels_equal_the_reference(
    name: str, last: bool, level: Target, compiler: Compiler
) -> None:
    graph = separable(last=last) if name == "separable" else graph_of(name, last=last)
    case = case_of(graph, seed=3)
    made = sources(case, level, f"{name} {last} {level.isa}")
    artifact = compiler.compile_texts([source.files[0] for source in made], level)
    assert not isinstance(artifact, Failure), artifact.message
    path = compiler.path_of(artifact)
    assert len(made) >= 3
    for source in made:
        kernel = LoadedKernel(path, source, case.lowered.nest)
        for threads in (1, 3):
            check(case, kernel, threads)


@pytest.mark.parametrize("name", CASES)
def test_first_guesses_are_points_of_the_space(name: str, level: Target) -> None:
    nest = case_of(graph_of(name, last=True)).lowered.nest
    for template in templates(level):
        if template.refuse(nest, level) is None:
            space = template.space(nest, level)
            for seed in space.seeds:
                assert all(dict(seed)[p.name] in p.choices for p in space.parameters)
