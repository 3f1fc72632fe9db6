"""Products and convolutions as nests, and points of the matmul template's space for them."""

from __future__ import annotations

import dataclasses

from kernel_gen.codegen.cpu.matmul.template import MatmulTemplate
from kernel_gen.errors import Refusal
from kernel_gen.fusion.channels_last import innermost
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.ir.types import TensorType
from kernel_gen.schedule.schedule import Choice, Schedule

TARGET = Target(
    DeviceKind.CPU, "x86-f25m17", "x86-64-v4", ("avx512bf16",), cores=2, vector_bytes=64
)


def linear(m: int, k: int, n: int, dtype: DType = DType.F32) -> LoopNest:
    """relu(x · wᵀ + b) with constant w and b."""
    b = GraphBuilder()
    x, w, bias = (
        b.input(TensorType(dtype, shape), kind)
        for shape, kind in (
            ((m, k), InputKind.USER),
            ((n, k), InputKind.PARAMETER),
            ((n,), InputKind.PARAMETER),
        )
    )
    return _nest(b, b.op("relu", b.op("linear", x, w, bias)))


def product(m: int, k: int, n: int) -> LoopNest:
    """x · y, nothing constant."""
    b = GraphBuilder()
    x, y = (b.input(TensorType(DType.F32, shape)) for shape in ((m, k), (k, n)))
    return _nest(b, b.op("matmul", x, y))


def scores(batch: int, heads: int, length: int, depth: int) -> LoopNest:
    """q · kᵀ of each head."""
    b = GraphBuilder()
    q, k = (b.input(TensorType(DType.F32, (batch, heads, length, depth))) for _ in range(2))
    return _nest(b, b.op("matmul", q, b.op("permute", k, dims=(0, 1, 3, 2))))


def convolution(
    images: int, channels: int, side: int, outputs: int, kernel: int, step: int, *, last: bool
) -> LoopNest:
    """relu(convolution) with constant weights; `last`: channels innermost."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (images, channels, side, side)))
    w = b.input(TensorType(DType.F32, (outputs, channels, kernel, kernel)), InputKind.PARAMETER)
    bias = b.input(TensorType(DType.F32, (outputs,)), InputKind.PARAMETER)
    around = {"padding": (kernel // 2,) * 2, "dilation": (1, 1), "groups": 1}
    y = b.op("convolution", x, w, bias, stride=(step, step), **around)
    return _nest(b, b.op("relu", y), (x,) if last else ())


def _nest(b: GraphBuilder, result: int, innermost_of: tuple[int, ...] = ()) -> LoopNest:
    b.output(result)
    graph = b.build()
    values = list(graph.values)
    for value in (*innermost_of, graph.outputs[0].value) if innermost_of else ():
        values[value] = innermost(graph.type_of(value), 1)
    graph = dataclasses.replace(graph, values=tuple(values))
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal)
    return lowered.nest


def schedule(nest: LoopNest, target: Target = TARGET, **choices: Choice) -> Schedule:
    """The template's first guess with some choices replaced."""
    template = MatmulTemplate()
    point = {**dict(template.space(nest, target).seeds[0]), **choices}
    made = template.schedule(nest, target, point)
    assert not isinstance(made, Refusal), made.sentence
    return made
