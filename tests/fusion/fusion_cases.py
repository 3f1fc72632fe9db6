"""Graphs that the fusion tests share, and helpers that run a group both ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import assume

from kernel_gen.errors import Refusal
from kernel_gen.executor.execute import execute
from kernel_gen.fusion.group import FusionGroup
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.arrays import constant_array, numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.graph import Graph, InputKind, attrs
from kernel_gen.ir.loopnest import BufferRole
from kernel_gen.ir.types import TensorType
from kernel_gen.schedule.schedule import Decision, Schedule

F32, BF16, F64, I64 = DType.F32, DType.BF16, DType.F64, DType.I64


def tensor(*shape: int, dtype: DType = F32) -> TensorType:
    return TensorType(dtype, shape)


def single(op: str, *operands: TensorType, **attributes: object) -> Graph:
    """A graph of one op on inputs of the given types."""
    b = GraphBuilder()
    b.output(b.op(op, *(b.input(type_) for type_ in operands), **attributes))
    return b.build()


def random_inputs(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    """Normal floats, small integers within the domain, coin flips."""
    rng = np.random.default_rng(seed)
    found = []
    for item in graph.inputs:
        type_ = graph.type_of(item.value)
        shape = [d for d in type_.shape if isinstance(d, int)]
        if type_.dtype.is_float:
            value = rng.standard_normal(shape)
        elif type_.dtype is DType.BOOL:
            value = rng.integers(0, 2, shape)
        else:
            low = item.domain.low if item.domain.low is not None else -5
            high = item.domain.high if item.domain.high is not None else 5
            value = rng.integers(int(low), int(high) + 1, shape)
        found.append(np.asarray(value).astype(numpy_dtype(type_.dtype)))
    return found


def whole(graph: Graph, numerics: str = "fast") -> Lowered:
    """All nodes of a graph as one nest; fails the test if that is refused."""
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))), numerics)
    assert not isinstance(lowered, Refusal), lowered.sentence
    return lowered


def operands_of(graph: Graph, lowered: Lowered, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays behind a nest's buffers that are read."""
    known = {item.value: array for item, array in zip(graph.inputs, inputs, strict=True)}
    pairs = zip(lowered.nest.buffers, lowered.operands, strict=True)
    return [known[value] for buffer, value in pairs if buffer.role is not BufferRole.OUTPUT]


def run_groups(
    graph: Graph,
    groups: Sequence[FusionGroup],
    inputs: Sequence[np.ndarray],
    numerics: str = "fast",
    tile: int | None = None,
) -> list[np.ndarray]:
    """The graph's outputs, its groups run one after the other by the NumPy executor."""
    known = {item.value: array for item, array in zip(graph.inputs, inputs, strict=True)}
    for constant in graph.constants:
        known[constant.value] = constant_array(constant, graph.type_of(constant.value))
    for group in groups:
        lowered = lower(graph, group, numerics)
        too_large = isinstance(lowered, Refusal) and lowered.code == "group-too-large"
        assume(not too_large)  # a few random graphs have windows over windows over windows
        assert not isinstance(lowered, Refusal), lowered.sentence
        reads = len(lowered.operands) - len(group.outputs)
        operands = [known[value] for value in lowered.operands[:reads]]
        schedule = None if tile is None else tiled(lowered, tile)
        results = execute(lowered.nest, operands, schedule)
        known.update(zip(lowered.operands[reads:], results, strict=True))
    return [known[output.value] for output in graph.outputs]


def tiled(lowered: Lowered, size: int) -> Schedule:
    """The first and last output axis cut into tiles, so that tails are run."""
    outer = [axis.name for axis in lowered.nest.axes if axis.name.startswith("i")]
    axes = dict.fromkeys(outer[:1] + outer[-1:])
    return Schedule("numpy", tuple(Decision("tile", attrs(axis=a, size=size)) for a in axes))


def check(
    graph: Graph,
    *,
    numerics: str = "fast",
    tolerance: float = 1e-5,
    inputs: Sequence[np.ndarray] | None = None,
) -> Lowered:
    """Lowers the graph whole and compares executions with the reference evaluator."""
    arrays = list(inputs) if inputs is not None else random_inputs(graph)
    expected = evaluate(graph, arrays, numerics)
    lowered = whole(graph, numerics)
    operands = operands_of(graph, lowered, arrays)
    order = {value: position for position, value in enumerate(lowered.operands)}
    made = dict.fromkeys(output.value for output in graph.outputs)
    written = sorted(made, key=lambda value: order[value])
    for schedule, precision in ((None, "f32"), (tiled(lowered, 3), "f32"), (None, "f64")):
        results = dict(
            zip(written, execute(lowered.nest, operands, schedule, precision), strict=True)
        )
        for output, want in zip(graph.outputs, expected, strict=True):
            got = results[output.value].astype(want.dtype)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return lowered


def parameter(b: GraphBuilder, *shape: int, dtype: DType = F32) -> int:
    return b.input(TensorType(dtype, shape), kind=InputKind.PARAMETER)
