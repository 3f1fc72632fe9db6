"""The evaluator against eager torch: every op, random and special operands, each dtype it takes."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.arrays import Array, numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.rounding import rounded
from kernel_gen.ir.types import TensorType
from tests.ir.eager import eager, from_torch, to_torch

FLOATS = (DType.F64, DType.F32, DType.F16, DType.BF16)
INTEGERS = (DType.I64, DType.I32, DType.I16, DType.I8, DType.U8)
# How far eager's float kernels may lie from the exact result, relative and absolute.
TOLERANCE = {
    DType.F64: (1e-12, 1e-13),
    DType.F32: (4e-6, 2e-6),
    DType.F16: (4e-3, 2e-3),
    DType.BF16: (2e-2, 1e-2),
}
SPECIALS = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0,
    6.0, 19.5, 20.5, -20.5, 88.0, -88.0, 1e-3, 1000.0, -1000.0,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One application; `shapes` are the operands', drawn with the dtype under test."""

    op: str
    shapes: tuple[tuple[int, ...], ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    dtypes: tuple[DType, ...] = FLOATS
    fixed: dict[int, DType] = field(default_factory=dict)  # operands of a dtype of their own


def _reductions() -> list[Case]:
    cases = []
    for op in ("sum", "prod", "amax", "amin", "any", "all", "argmax", "argmin"):
        dtypes = (DType.BOOL,) if op in ("any", "all") else (*FLOATS, *INTEGERS)
        all_dims: list[list[int]] = [[1], [0, 1, 2]] + ([[0, 2]] if "arg" not in op else [])
        for dims, keepdim in itertools.product(all_dims, (False, True)):
            cases.append(Case(op, ((3, 5, 4),), {"dims": dims, "keepdim": keepdim}, dtypes))
    for op in ("sum", "prod"):  # over nothing: the neutral element
        cases.append(Case(op, ((3, 0),), {"dims": [1], "keepdim": False}, (*FLOATS, *INTEGERS)))
    for op in ("mean", "var", "std"):
        extra = {} if op == "mean" else {"correction": 1}
        for dims in ([1], [0, 2]):
            cases.append(Case(op, ((3, 5, 4),), {"dims": dims, "keepdim": True, **extra}))
    cases.append(Case("var", ((3, 1),), {"dims": [1], "keepdim": False, "correction": 0}))
    cases.append(Case("mean", ((3, 0),), {"dims": [1], "keepdim": False}))
    for op in ("topk", "argtopk"):
        for dim, k in ((1, 4), (2, 1)):
            cases.append(Case(op, ((3, 5, 7),), {"dim": dim, "k": k}, (*FLOATS, *INTEGERS)))
    return cases + _pools() + _resizes()


def _resizes() -> list[Case]:
    """In fp32 torch rounds the places it looks at, which cubic weights show."""
    found = []
    uneven = {"sizes": [6, 3], "scales": [1.5, 0.0]}
    for mode, align in itertools.product(("linear", "cubic"), (False, True)):
        dtypes = FLOATS if mode == "linear" else (DType.F64, DType.F16, DType.BF16)
        attrs = {**uneven, "mode": mode, "align": align}
        found.append(Case("resize", ((1, 2, 4, 7),), attrs, dtypes))
    plain = {"mode": "linear", "align": False}
    return [*found, Case("resize", ((2, 3, 5),), {"sizes": [9], "scales": [0.0], **plain})]


def _pools() -> list[Case]:
    plane = {"kernel": [3, 2], "stride": [2, 1], "low": [1, 0], "high": [2, 1]}
    line = {"kernel": [2], "stride": [3], "low": [0], "high": [0]}
    return [
        Case("max_pool", ((2, 3, 7, 8),), {**plane, "dilation": [1, 3]}),
        Case("max_pool", ((2, 3, 9),), {**line, "dilation": [2]}),
        Case("avg_pool", ((2, 3, 7, 8),), plane),
        Case("avg_pool", ((2, 3, 9),), line),
        *_pools_back(),
    ]


def _pools_back() -> list[Case]:
    plane = {"kernel": [3, 2], "stride": [2, 1], "low": [1, 0], "high": [1, 0]}
    apart = {"kernel": [2, 2], "stride": [3, 2], "low": [0, 0], "high": [0, 0]}
    whole = {"image": [3, 2], "kernel": [3, 2], "stride": [1, 1], "dilation": [1, 1]}
    whole |= {"low": [0, 0], "high": [0, 0]}
    return [
        Case("argmax_pool", ((2, 3, 7, 8),), {**plane, "dilation": [1, 1]}),
        Case("argmax_pool", ((2, 3, 7, 8),), {**apart, "dilation": [2, 3]}),
        Case("avg_pool_gradient", ((2, 3, 4, 7),), {**plane, "image": [7, 8]}),
        Case("avg_pool_gradient", ((2, 3, 2, 4),), {**apart, "image": [7, 8]}),
        # One window over the whole image: any place in the image is the window's.
        Case("max_pool_gradient", ((2, 3, 1, 1),) * 2, whole, fixed={1: DType.I64}),
    ]


def _views() -> list[Case]:
    every = tuple(DType)
    pads = {"low": [1, 0, 2], "high": [0, 3, 1]}
    return [
        Case("reshape", ((2, 6),), {"shape": [3, 2, 2]}, every),
        Case("permute", ((2, 3, 4),), {"dims": [2, 0, 1]}, every),
        Case("expand", ((3, 1),), {"shape": [2, 3, 4]}, every),
        Case("slice", ((4, 9),), {"dim": 1, "start": 1, "stop": 8, "step": 3}, every),
        Case("slice", ((4, 9),), {"dim": 0, "start": 2, "stop": 2, "step": 1}, every),
        Case("flip", ((3, 4, 2),), {"dims": [0, 2]}, every),
        Case("pad", ((2, 3, 4),), {**pads, "value": 2.5}, FLOATS),
        Case("pad", ((2, 3, 4),), {**pads, "value": 0.1}, FLOATS),
        Case("pad", ((2, 3, 4),), {**pads, "value": 7}, INTEGERS),
        Case("concat", ((2, 3), (2, 0), (2, 5)), {"dim": 1}, every),
        Case("full", (), {"shape": [2, 3], "dtype": "f32", "value": 0.1}),
        Case("full", (), {"shape": [], "dtype": "u8", "value": 255}),
        Case("iota", (), {"shape": [2, 5, 3], "dtype": "i32", "dim": 1, "start": -3, "step": 2}),
        Case("iota", (), {"shape": [4], "dtype": "f32", "dim": 0, "start": 0.5, "step": 0.25}),
    ]


def _elementwise() -> list[Case]:
    cases: list[Case] = []
    whole = ("abs", "neg", "relu", "sign", "floor", "ceil", "round", "trunc")
    for name, spec in OPS.items():
        if spec.kind is OpKind.UNARY and not name.startswith(("logical", "bitwise")):
            cases.append(Case(name, ((64,),), {}, FLOATS + (INTEGERS if name in whole else ())))
    cases += [Case(name, ((64,),), {}, tuple(DType)) for name in ("isnan", "isinf", "isfinite")]
    cases += [Case("bitwise_not", ((9,),), {}, (*INTEGERS, DType.BOOL))]
    cases += [Case("logical_not", ((9,),), {}, (DType.BOOL,))]
    two = ((5, 1, 23), (3, 1))
    for name in ("add", "sub", "mul", "maximum", "minimum"):
        cases.append(Case(name, two, {}, (*FLOATS, *INTEGERS)))
    for name in ("div", "floor_div", "remainder", "fmod", "pow", "atan2", "copysign"):
        cases.append(Case(name, two, {}, FLOATS))
    for name in ("floor_div", "remainder", "fmod"):
        cases.append(Case(name, two, {}, INTEGERS))
    for name in ("shift_left", "shift_right"):
        cases.append(Case(name, two, {}, INTEGERS))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        cases.append(Case(name, two, {}, (*INTEGERS, DType.BOOL)))
    for name in ("logical_and", "logical_or", "logical_xor"):
        cases.append(Case(name, two, {}, (DType.BOOL,)))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        cases.append(Case(name, two, {}, tuple(DType)))
    three = ((5, 1), (1, 7), (5, 7))
    return [*cases, Case("where", three, {}, tuple(DType), {0: DType.BOOL})]


def _casts() -> list[Case]:
    """Any type to any, but for out-of-range floats to integers, which no two compilers agree on."""
    return [Case("cast", ((40,),), {"dtype": target.value}, tuple(DType)) for target in DType]


def _indexed() -> list[Case]:
    every, index = tuple(DType), {1: DType.I64}
    return [
        Case("gather", ((4, 6), (3, 5)), {"dim": 1}, every, index),
        Case("gather", ((4, 6), (9, 2)), {"dim": 0}, every, {1: DType.I32}),
        Case("take", ((7, 3), (2, 4)), {"dim": 0}, every, index),
        Case("take", ((2, 7, 3), ()), {"dim": 1}, every, {1: DType.I32}),
    ]


def _contractions() -> list[Case]:
    plain = {"stride": [1], "padding": [0], "dilation": [1], "groups": 1}
    two = {"stride": [2, 1], "padding": [1, 2], "dilation": [1, 2], "groups": 2}
    wide = (DType.F64, DType.F32)
    return [
        Case("matmul", ((3, 5), (5, 4)), {}, (*FLOATS, *INTEGERS)),
        Case("matmul", ((2, 1, 3, 5), (4, 5, 2)), {}, (DType.F64, DType.F32, DType.BF16)),
        Case("matmul", ((3, 0), (0, 4)), {}, (DType.F64, DType.F32)),
        Case("convolution", ((2, 3, 11), (4, 3, 3)), plain, wide),
        Case("convolution", ((2, 4, 8, 9), (6, 2, 3, 2), (6,)), two, wide),
        Case("conv_transpose", ((2, 3, 5), (3, 4, 3)), {**plain, "output_padding": [0]}, wide),
        Case(
            "conv_transpose",
            ((2, 4, 5, 6), (4, 3, 3, 2), (6,)),
            {**two, "output_padding": [1, 0]},
            wide,
        ),
        Case("conv_weight_gradient", ((2, 3, 11), (2, 4, 9)), {**plain, "kernel": [3]}, wide),
        Case(
            "conv_weight_gradient", ((2, 4, 8, 9), (2, 6, 4, 11)), {**two, "kernel": [3, 2]}, wide
        ),
        Case("linear", ((2, 3, 5), (4, 5), (4,))),
        Case("linear", ((5,), (4, 5))),
        *(_attention(mask, causal) for mask, causal in ((None, False), (None, True))),
        *(_attention(mask, False) for mask in (DType.BOOL, DType.F32)),
    ]


def _attention(mask: DType | None, causal: bool) -> Case:
    shapes: tuple[tuple[int, ...], ...] = ((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 8))
    attrs = {"scale": None if causal else 0.3, "causal": causal, "mask": mask is not None}
    if mask is None:
        return Case("attention", shapes, attrs)
    dtypes = FLOATS if mask is DType.BOOL else (mask,)
    return Case("attention", (*shapes, (4, 5)), attrs, dtypes, {3: mask})


def _norms() -> list[Case]:
    cases: list[Case] = []
    for weight, bias in ((True, True), (True, False), (False, False)):
        extra = ((4, 6),) * (weight + bias)
        flags = {"eps": 1e-5, "weight": weight, "bias": bias}
        cases.append(Case("layer_norm", ((3, 4, 6), *extra), {"axes": 2, **flags}))
        channels = ((4,),) * (weight + bias)
        cases.append(Case("group_norm", ((3, 4, 2, 5), *channels), {"groups": 2, **flags}))
        cases.append(Case("batch_norm", ((3, 4, 5), (4,), (4,), *channels), flags))
    for weight in (True, False):
        extra_rms = ((6,),) * weight
        attrs = {"axes": 1, "eps": 1e-6, "weight": weight}
        cases.append(Case("rms_norm", ((3, 4, 6), *extra_rms), attrs))
    for dim in (0, 1, 2):
        cases += [Case(op, ((3, 4, 5),), {"dim": dim}) for op in ("softmax", "log_softmax")]
    return cases


def _activations() -> list[Case]:
    plain = ("silu", "hardswish", "hardsigmoid", "relu6", "mish", "softplus", "logsigmoid")
    return [
        *(Case(op, ((64,),)) for op in plain),
        *(Case("gelu", ((64,),), {"approximate": how}) for how in ("none", "tanh")),
        Case("square", ((64,),), {}, (*FLOATS, *INTEGERS)),
        Case("leaky_relu", ((64,),), {"slope": 0.01}),
        Case("elu", ((64,),), {"alpha": 1.7, "scale": 1.05}),
        Case("clamp", ((64,),), {"low": -0.1, "high": 2.0}),
        Case("clamp", ((64,),), {"low": None, "high": 1.0}),
        Case("clamp", ((64,),), {"low": 3.0, "high": 1.0}),
        Case("clamp", ((64,),), {"low": 2, "high": 30}, INTEGERS),
        Case("clamp", ((64,),), {"low": None, "high": None}),
    ]


CASES = [
    *_reductions(), *_views(), *_elementwise(), *_casts(), *_indexed(), *_contractions(),
    *_norms(), *_activations(),
]  # fmt: skip


def _operand(case: Case, i: int, dtype: DType, *, special: bool) -> Array:
    """Random values; with `special`, edge values where the op takes any value there."""
    rng = np.random.default_rng(zlib.crc32(f"{case.op} {case.attrs} {i} {dtype}".encode()))
    shape, own = case.shapes[i], case.fixed.get(i, dtype)
    if case.op in ("gather", "take") and i == 1:
        extent = case.shapes[0][case.attrs["dim"]]
        return rng.integers(0, extent, shape).astype(numpy_dtype(own))
    if case.op == "max_pool_gradient" and i == 1:
        return rng.integers(0, math.prod(case.attrs["image"]), shape)
    if own is DType.BOOL:
        return rng.random(shape) < 0.5
    if own.is_integer:
        return _integers(case.op, i, own, rng, shape)
    values = rng.standard_normal(shape) * 2
    if case.op == "batch_norm" and i == 2:
        return np.abs(values).astype(numpy_dtype(own))
    if special and (i == 0 or OPS[case.op].kind is not OpKind.COMPOSITE):
        picks = rng.choice(SPECIALS, shape)
        values = np.where(rng.random(shape) < 0.5, picks, values)
        if len(SPECIALS) <= values.size and values.ndim == 1:
            values[: len(SPECIALS)] = SPECIALS
    return np.asarray(values).astype(numpy_dtype(own))


def _integers(
    op: str, i: int, dtype: DType, rng: np.random.Generator, shape: tuple[int, ...]
) -> Array:
    limits = np.iinfo(numpy_dtype(dtype).name)
    low, high = int(limits.min), int(limits.max)
    if i == 1 and op in ("floor_div", "remainder", "fmod"):
        low, high = 1, min(high, 9)  # zero and the lowest over -1 trap
    elif i == 1 and op.startswith("shift"):
        low, high = 0, 8 * dtype.bytes + 2
    drawn = rng.integers(low, high, shape, numpy_dtype(dtype).name, endpoint=True)
    return np.asarray(drawn)


def _types(case: Case, operands: Sequence[Array], dtype: DType) -> list[TensorType]:
    return [TensorType(case.fixed.get(i, dtype), a.shape) for i, a in enumerate(operands)]


def _check(case: Case, dtype: DType, *, special: bool) -> None:
    operands = [_operand(case, i, dtype, special=special) for i in range(len(case.shapes))]
    attrs = dict(case.attrs)
    b = GraphBuilder()
    b.output(b.op(case.op, *(b.input(t) for t in _types(case, operands, dtype)), **attrs))
    graph = b.build()
    with np.errstate(all="ignore"):
        expected = eager(case.op, [to_torch(array) for array in operands], attrs)
    want = from_torch(expected)
    for numerics in ("fast", "strict"):
        (got,) = evaluate(graph, operands, numerics)
        kind = graph.values[graph.outputs[0].value].dtype
        assert got.shape == tuple(expected.shape)
        if kind.is_float:
            rtol, atol = TOLERANCE[kind]
            with np.errstate(over="ignore"):
                got = rounded(got, kind)  # as storing it does
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=numerics)
        else:
            np.testing.assert_array_equal(got, want, err_msg=numerics)


def _name(case: Case) -> str:
    return f"{case.op}-{'-'.join(str(v) for v in case.attrs.values())}".replace(" ", "")


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_agrees_with_eager_on_random_operands(case: Case) -> None:
    for dtype in case.dtypes:
        _check(case, dtype, special=False)


# What eager itself does not agree on: gelu(inf) is NaN or inf by vector width, casts of NaN to
# integers differ by compiler, NaN scores by attention kernel, f16 products by order.
_NO_SPECIALS = (
    "cast",
    "gelu",
    "convolution",
    "conv_transpose",
    "conv_weight_gradient",
    "resize",
    "attention",
    "prod",
)


@pytest.mark.parametrize("case", [c for c in CASES if c.op not in _NO_SPECIALS], ids=_name)
def test_agrees_with_eager_on_special_operands(case: Case) -> None:
    for dtype in case.dtypes:
        if dtype.is_float:
            _check(case, dtype, special=True)


def test_every_op_is_covered() -> None:
    assert {case.op for case in CASES} == set(OPS) - {"framework"}


def test_gelu_of_specials() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (4,)))
    b.output(b.op("gelu", x, approximate="none"))
    (y,) = evaluate(b.build(), [np.array([math.inf, -math.inf, math.nan, 0.0], np.float32)])
    np.testing.assert_array_equal(y, [math.inf, math.nan, math.nan, 0.0])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rank", [2, 4])
def test_fully_masked_rows_of_attention_give_zeros(dtype: DType, rank: int) -> None:
    rng = np.random.default_rng(5)
    shape = (1, 2, 3, 8)[4 - rank :]
    q, k, v = (rng.standard_normal(shape).astype(numpy_dtype(dtype)) for _ in range(3))
    keep = np.array([[True, False, True], [False] * 3, [True] * 3])
    b = GraphBuilder()
    operands = [b.input(TensorType(dtype, shape)) for _ in range(3)]
    mask = b.input(TensorType(DType.BOOL, (3, 3)))
    b.output(b.op("attention", *operands, mask, scale=None, causal=False, mask=True))
    (got,) = evaluate(b.build(), [q, k, v, keep])
    attrs = {"scale": None, "causal": False, "mask": True}
    want = from_torch(eager("attention", [to_torch(x) for x in (q, k, v, keep)], attrs))
    assert not got[..., 1, :].any()
    np.testing.assert_allclose(got, want, *TOLERANCE[dtype])


def test_framework_node_needs_a_callback() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.BF16, (3,)))
    two = b.op("add", x, x)
    (y,) = b.op(
        "framework", two, out_types=[TensorType(DType.BF16, (3,))],
        target="aten.sort.default", args="", code="unsupported-op", sentence="",
    )  # fmt: skip
    b.output(y)
    graph = b.build()
    inputs = [np.array([3.0, 1.0, 2.0]).astype(numpy_dtype(DType.BF16))]
    with pytest.raises(InvalidGraph, match=r"aten\.sort\.default"):
        evaluate(graph, inputs)
    seen: list[DType] = []

    def run(node: Any, operands: tuple[Array, ...]) -> list[Array]:
        seen.append(operands[0].dtype)
        return [np.sort(operands[0])]

    (got,) = evaluate(graph, inputs, framework=run)
    assert seen == [numpy_dtype(DType.BF16)]
    np.testing.assert_array_equal(got, [2.0, 4.0, 6.0])
