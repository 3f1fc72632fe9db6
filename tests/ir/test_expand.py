"""Expansions: every composite becomes primitives of the same type, in place in a graph too."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.expand import expand
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.infer import infer
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.types import Sym, TensorType
from tests.ir.expanded import expand_graph
from tests.strategies import graphs, inputs_for

N = Sym("s0")
COMPOSITES = {name for name, spec in OPS.items() if spec.kind is OpKind.COMPOSITE}
NORM = {"eps": 1e-5, "weight": True, "bias": True}
# op -> shapes with a symbolic batch, attributes
SYMBOLIC: dict[str, tuple[list[tuple[int | Sym, ...]], dict[str, Any]]] = {
    "linear": ([(N, 8), (4, 8), (4,)], {}),
    "layer_norm": ([(N, 3, 8), (8,), (8,)], {"axes": 1, **NORM}),
    "rms_norm": ([(N, 8), (8,)], {"axes": 1, "eps": 1e-6, "weight": True}),
    "group_norm": ([(N, 6, 5), (6,), (6,)], {"groups": 3, **NORM}),
    "batch_norm": ([(N, 6, 5), (6,), (6,), (6,), (6,)], NORM),
    "softmax": ([(4, N)], {"dim": 1}),
    "log_softmax": ([(N, 4)], {"dim": 1}),
    "gelu": ([(N, 4)], {"approximate": "tanh"}),
    "leaky_relu": ([(N,)], {"slope": 0.1}),
    "elu": ([(N,)], {"alpha": 1.0, "scale": 1.0}),
    "clamp": ([(N,)], {"low": 0.0, "high": 1.0}),
    "mean": ([(N, 4)], {"dims": (0, 1), "keepdim": False}),
    "var": ([(N, 4)], {"dims": (0,), "keepdim": True, "correction": 1}),
    "conv_transpose": (
        [(N, 4, 5), (4, 3, 3), (6,)],
        {"stride": (2,), "padding": (1,), "output_padding": (1,), "dilation": (2,), "groups": 2},
    ),
    "conv_weight_gradient": (
        [(2, 4, 7), (2, 6, 3)],
        {"kernel": (2,), "stride": (2,), "padding": (0,), "dilation": (1,), "groups": 2},
    ),
    "max_pool": (
        [(N, 3, 7)],
        {"kernel": (3,), "stride": (2,), "low": (1,), "high": (0,), "dilation": (1,)},
    ),
    "avg_pool": ([(N, 3, 7)], {"kernel": (2,), "stride": (2,), "low": (0,), "high": (1,)}),
    "argmax_pool": (
        [(N, 3, 7)],
        {"kernel": (3,), "stride": (2,), "low": (1,), "high": (0,), "dilation": (1,)},
    ),
    "max_pool_gradient": (
        [(N, 3, 3), (N, 3, 3)],
        {
            "image": (7,),
            "kernel": (3,),
            "stride": (2,),
            "low": (0,),
            "high": (0,),
            "dilation": (1,),
        },
    ),
    "avg_pool_gradient": (
        [(N, 3, 3)],
        {"image": (7,), "kernel": (2,), "stride": (2,), "low": (0,), "high": (0,)},
    ),
    "resize": (
        [(N, 4, 5)],
        {"sizes": (7, 3), "scales": (0.0, 0.0), "mode": "cubic", "align": False},
    ),
    "topk": ([(N, 4)], {"dim": 1, "k": 3}),
    "argtopk": ([(4, N)], {"dim": 0, "k": 2}),
    "std": ([(N, 4)], {"dims": (0,), "keepdim": False, "correction": 0}),
    "attention": (
        [(N, 2, 3, 8), (N, 2, 5, 8), (N, 2, 5, 8)],
        {"scale": None, "causal": True, "mask": False},
    ),
    **{
        op: ([(N, 4)], {})
        for op in (
            "silu", "hardswish", "hardsigmoid", "relu6", "mish", "softplus", "logsigmoid", "square",
        )
    },
}  # fmt: skip

WHOLE = {("max_pool_gradient", 1)}  # operands that are positions


def _one(op: str, dtype: DType, sizes: dict[Sym, int] | None = None) -> Graph:
    """A graph of one composite; with `sizes` static."""
    shapes, attributes = SYMBOLIC[op]
    b = GraphBuilder()
    if sizes is None:
        b.symbol("s0", 1, 99, 7)
    bound = [tuple((sizes or {}).get(d, d) for d in shape) for shape in shapes]  # type: ignore[call-overload]
    dtypes = (DType.I64 if (op, i) in WHOLE else dtype for i in range(len(bound)))
    types = (TensorType(d, shape) for d, shape in zip(dtypes, bound, strict=True))
    b.output(b.op(op, *(b.input(type_) for type_ in types), **attributes))
    return b.build()


def test_every_composite_is_here() -> None:
    assert set(SYMBOLIC) == COMPOSITES


@pytest.mark.parametrize("op", sorted(COMPOSITES))
@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.BF16])
def test_expansion_has_the_type_of_the_composite(op: str, dtype: DType) -> None:
    graph = _one(op, dtype)
    types = [graph.values[value] for value in graph.nodes[0].inputs]
    body = expand(graph.nodes[0], types)
    assert [body.values[item.value] for item in body.inputs] == types
    assert body.values[body.outputs[0].value] == infer(op, types, graph.nodes[0].attrs)
    assert not {node.op for node in body.nodes} & COMPOSITES


@pytest.mark.parametrize("op", sorted(COMPOSITES))
def test_symbolic_and_static_graphs_agree(op: str) -> None:
    symbolic, static = _one(op, DType.F32), _one(op, DType.F32, {N: 7})
    rng = np.random.default_rng(3)
    arrays = [
        np.abs(rng.standard_normal(static.values[item.value].shape) * 2).astype(
            numpy_dtype(static.values[item.value].dtype)
        )
        for item in static.inputs
    ]
    (want,) = evaluate(static, arrays)
    for graph in (symbolic, expand_graph(symbolic, COMPOSITES)):
        (got,) = evaluate(graph, arrays)
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("op", ["softmax", "layer_norm", "rms_norm", "mean", "silu"])
def test_narrow_floats_are_widened_once_and_rounded_once(op: str) -> None:
    graph = _one(op, DType.BF16)
    body = expand(graph.nodes[0], [graph.values[v] for v in graph.nodes[0].inputs])
    casts = [node for node in body.nodes if node.op == "cast"]
    assert len(casts) == len(body.inputs) + 1
    inner = [body.values[n.output].dtype for n in body.nodes if n.op not in ("cast",)]
    assert set(inner) == {DType.F32}


def test_f64_stays_f64() -> None:
    graph = _one("softmax", DType.F64)
    body = expand(graph.nodes[0], [graph.values[0]])
    assert {type.dtype for type in body.values} == {DType.F64}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_expanded_graphs_mean_the_same(data: st.DataObject) -> None:
    graph = data.draw(
        graphs(steps=("activation", "softmax", "moment", "norm", "attention", "cast"))
    )
    inputs = data.draw(inputs_for(graph))
    expanded = expand_graph(graph, COMPOSITES)
    assert not {node.op for node in expanded.nodes} & COMPOSITES
    assert [expanded.values[o.value] for o in expanded.outputs] == [
        graph.values[o.value] for o in graph.outputs
    ]
    for numerics in ("fast", "strict"):
        for got, want in zip(
            evaluate(expanded, inputs, numerics), evaluate(graph, inputs, numerics), strict=True
        ):
            np.testing.assert_array_equal(got, want)


def test_only_the_named_ops_are_expanded() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (2, 3)))
    b.output(b.op("silu", b.op("softmax", x, dim=1, name="attn.softmax")))
    expanded = expand_graph(b.build(), {"softmax"})
    assert expanded.nodes[-1].op == "silu"
    assert {node.name for node in expanded.nodes[:-1]} == {"attn.softmax"}


def test_primitives_have_no_expansion() -> None:
    with pytest.raises(InvalidGraph, match="'exp' is not a composite"):
        expand(Node("exp", (0,), (1,)), [TensorType(DType.F32, (2,))])


def test_softmax_subtracts_the_maximum() -> None:
    """Large scores do not overflow."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (1, 2)))
    b.output(b.op("softmax", x, dim=1))
    (got,) = evaluate(expand_graph(b.build(), COMPOSITES), [np.float32([[1000.0, 999.0]])])
    np.testing.assert_allclose(got, [[0.7310585786, 0.2689414214]], rtol=1e-6)


def test_variance_does_not_cancel() -> None:
    """Two passes: a mean far above the spread costs nothing."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (1000,)))
    b.output(b.op("var", x, dims=(0,), keepdim=False, correction=1))
    values = (4096 + np.random.default_rng(1).random(1000)).astype(np.float32)
    (got,) = evaluate(b.build(), [values], "strict")
    np.testing.assert_allclose(got, np.var(values.astype(np.float64), ddof=1), rtol=1e-4)


def test_an_attention_mask_does_not_hide_nan() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorType(DType.F32, (1, n, 1))) for n in (1, 2, 2))
    mask = b.input(TensorType(DType.BOOL, (1, 2)))
    b.output(b.op("attention", q, k, v, mask, scale=1.0, causal=False, mask=True))
    ones, seen = np.ones((1, 2, 1), np.float32), np.array([[True, False]])
    for second, expected in ((1.0, 1.0), (np.nan, np.nan)):
        keys = np.array([1.0, second], np.float32).reshape(1, 2, 1)
        (found,) = evaluate(b.build(), [ones[:, :1], keys, ones, seen])
        np.testing.assert_array_equal(found, expected)


def test_a_linear_layer_rounds_once() -> None:
    b, kind = GraphBuilder(), DType.BF16
    x, w, bias = (b.input(TensorType(kind, shape)) for shape in ((1, 1), (1, 1), (1,)))
    b.output(b.op("linear", x, w, bias))
    values = [np.array(v, ml_dtypes.bfloat16) for v in ([[1.015625]], [[1.015625]], [-1.0])]
    (found,) = evaluate(b.build(), values, "strict")
    assert found.item() == 1.015625**2 - 1  # rounded twice it is 2⁻⁵
