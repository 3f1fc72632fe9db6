"""Every kind of op, lowered alone and among others, gives the reference's values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from fusion_cases import F32, I64, check, single, tensor, whole

from kernel_gen.executor.execute import execute
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import TensorType, ValueDomain

X = tensor(4, 6)
COMPOSITES = {
    "linear": ((tensor(3, 4, 6), tensor(5, 6), tensor(5)), {}),
    "layer_norm": (
        (X, tensor(6), tensor(6)),
        {"axes": 1, "eps": 1e-5, "weight": True, "bias": True},
    ),
    "rms_norm": ((X, tensor(6)), {"axes": 1, "eps": 1e-5, "weight": True}),
    "group_norm": (
        (tensor(2, 6, 3, 4), tensor(6), tensor(6)),
        {"groups": 3, "eps": 1e-5, "weight": True, "bias": True},
    ),
    "softmax": ((X,), {"dim": 1}),
    "log_softmax": ((X,), {"dim": 0}),
    "gelu": ((X,), {"approximate": "none"}),
    "silu": ((X,), {}),
    "hardswish": ((X,), {}),
    "mish": ((X,), {}),
    "softplus": ((X,), {}),
    "elu": ((X,), {"alpha": 1.0, "scale": 1.0}),
    "clamp": ((X,), {"low": -0.5, "high": None}),
    "mean": ((tensor(4, 6, 3),), {"dims": (0, 2), "keepdim": False}),
    "var": ((X,), {"dims": (1,), "keepdim": True, "correction": 1}),
    "max_pool": (
        (tensor(2, 3, 7, 8),),
        {"kernel": (3, 2), "stride": (2, 1), "low": (1, 0), "high": (1, 1), "dilation": (1, 2)},
    ),
    "avg_pool": (
        (tensor(2, 3, 7),),
        {"kernel": (3,), "stride": (2,), "low": (1,), "high": (1,)},
    ),
    "conv_transpose": (
        (tensor(2, 4, 5, 3), tensor(4, 3, 3, 2), tensor(6)),
        {
            "stride": (2, 3),
            "padding": (1, 0),
            "output_padding": (1, 0),
            "dilation": (1, 2),
            "groups": 2,
        },
    ),
    "conv_weight_gradient": (
        (tensor(2, 4, 7, 6), tensor(2, 6, 4, 4)),
        {
            "kernel": (3, 2),
            "stride": (2, 1),
            "padding": (1, 0),
            "dilation": (1, 2),
            "groups": 2,
        },
    ),
    "argmax_pool": (
        (tensor(2, 3, 7, 8),),
        {"kernel": (3, 2), "stride": (2, 1), "low": (1, 0), "high": (1, 1), "dilation": (1, 2)},
    ),
    "avg_pool_gradient": (
        (tensor(2, 3, 4, 7),),
        {"image": (7, 8), "kernel": (3, 2), "stride": (2, 1), "low": (1, 0), "high": (1, 0)},
    ),
    "resize": (
        (tensor(2, 3, 4, 5),),
        {"sizes": (6, 9), "scales": (1.5, 0.0), "mode": "linear", "align": False},
    ),
    "topk": ((X,), {"dim": 1, "k": 3}),
    "argtopk": ((X,), {"dim": 0, "k": 2}),
    "attention": (
        (tensor(2, 3, 4, 5), tensor(2, 3, 6, 5), tensor(2, 3, 6, 5), tensor(4, 6)),
        {"scale": 0.4, "causal": False, "mask": True},
    ),
}


@pytest.mark.parametrize("op", COMPOSITES)
def test_composite_equals_reference(op):
    operands, attributes = COMPOSITES[op]
    check(single(op, *operands, **attributes))


PRIMITIVES = [
    ("reshape", (X,), {"shape": (3, 8)}),
    ("reshape", (tensor(2, 3, 4),), {"shape": (4, 6)}),
    ("permute", (tensor(2, 3, 4),), {"dims": (2, 0, 1)}),
    ("expand", (tensor(4, 1),), {"shape": (2, 4, 5)}),
    ("slice", (X,), {"dim": 1, "start": 1, "stop": 6, "step": 2}),
    ("flip", (X,), {"dims": (0, 1)}),
    ("pad", (X,), {"low": (1, 0), "high": (2, 3), "value": -1.5}),
    ("concat", (X, tensor(4, 2), tensor(4, 0), X), {"dim": 1}),
    ("sum", (X,), {"dims": (0,), "keepdim": False}),
    ("sum", (X,), {"dims": (0, 1), "keepdim": False}),
    ("prod", (X,), {"dims": (1,), "keepdim": True}),
    ("amin", (X,), {"dims": (0,), "keepdim": True}),
    ("argmax", (X,), {"dims": (1,), "keepdim": False}),
    ("argmin", (X,), {"dims": (0, 1), "keepdim": False}),
    ("any", (tensor(4, 6, dtype=DType.BOOL),), {"dims": (1,), "keepdim": False}),
    ("matmul", (tensor(3, 1, 4, 6), tensor(2, 6, 5)), {}),
    ("matmul", (tensor(4, 6, dtype=I64), tensor(6, 5, dtype=I64)), {}),
    ("full", (), {"shape": (3, 4), "dtype": "f32", "value": 2.5}),
    ("iota", (), {"shape": (3, 4), "dtype": "i64", "dim": 1, "start": 2, "step": 3}),
    ("sum", (tensor(3, 0),), {"dims": (1,), "keepdim": False}),
    ("cast", (tensor(4, 6, dtype=I64),), {"dtype": "f32"}),
]


@pytest.mark.parametrize(("op", "operands", "attributes"), PRIMITIVES)
def test_primitive_equals_reference(op, operands, attributes):
    check(single(op, *operands, **attributes))


def test_gather_and_take_read_at_values():
    b = GraphBuilder()
    table = b.input(tensor(7, 4))
    domain = ValueDomain(0, 6)
    rows = b.input(TensorType(I64, (2, 3)), domain=domain)
    places = b.input(TensorType(I64, (5, 4)), domain=domain)
    b.output(b.op("relu", b.op("take", table, rows, dim=0)))
    b.output(b.op("gather", table, places, dim=0))
    check(b.build())


def test_pad_of_a_computed_value_reads_nothing_outside():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    padded = b.op("pad", b.op("exp", x), low=(1, 1), high=(0, 2), value=3.0)
    b.output(b.op("sum", padded, dims=(1,), keepdim=False))
    check(b.build())


def test_concat_of_one_tensor_twice_used_twice():
    b = GraphBuilder()
    p = b.input(tensor(3, 5))
    v = b.op("concat", p, p, dim=0)
    b.output(v)
    b.output(b.op("mul", v, v))
    check(b.build())


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("resize", {"sizes": (7,), "scales": (0.0,), "mode": "linear", "align": False}),
        ("clamp", {"low": None, "high": None}),
    ],
)
def test_a_composite_that_changes_nothing_is_a_value_of_its_own(op, attributes):
    b = GraphBuilder()
    v = b.op(op, b.input(tensor(3, 2, 7)), **attributes)
    b.output(v)
    b.output(b.op("mul", v, v))
    check(b.build())


def test_int32_wraps_before_it_is_widened():
    b = GraphBuilder()
    x = b.input(TensorType(DType.I32, (2,), None), domain=ValueDomain(2**31 - 1, 2**31 - 1))
    b.output(b.op("cast", b.op("add", x, x), dtype="i64"))
    check(b.build())


def test_group_norm_shares_the_axes_of_its_rows():
    operands, attributes = COMPOSITES["group_norm"]
    nest = check(single("group_norm", *operands, **attributes)).nest
    assert [axis.extent for axis in nest.axes] == [2, 3, 2, 3, 4]
    assert sum(type(s).__name__ == "Load" for s in nest.statements) == 3


def test_softmax_has_one_axis_for_its_row():
    nest = check(single("softmax", tensor(4, 6), dim=1)).nest
    assert [axis.name for axis in nest.axes] == ["i0", "i1"]
    assert sum(type(s).__name__ == "Load" for s in nest.statements) == 1


ROWS = {
    "softmax": ((), {"dim": 1}),
    "log_softmax": ((), {"dim": 1}),
    "layer_norm": ((), {"axes": 1, "eps": 1e-5, "weight": False, "bias": False}),
    "rms_norm": ((tensor(6),), {"axes": 1, "eps": 1e-5, "weight": True}),
}
READERS = ("sum", "amax", "argmax", "matmul")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("op", ROWS)
@pytest.mark.parametrize(("start", "stop"), [(0, 5), (1, 6), (1, 5)])
def test_statistics_are_those_of_the_whole_row_where_a_part_is_read(op, reader, start, stop):
    """As softmax(x)[:, :-1].max(-1): the maximum runs along a part of what the softmax sums."""
    operands, attributes = ROWS[op]
    b = GraphBuilder()
    row = b.op(op, b.input(X), *(b.input(type_) for type_ in operands), **attributes)
    part = b.op("slice", row, dim=1, start=start, stop=stop, step=1)
    if reader == "matmul":
        b.output(b.op("matmul", part, b.input(tensor(stop - start, 3))))
    else:
        b.output(b.op(reader, part, dims=(1,), keepdim=False))
    check(b.build())


def test_head_merge_splits_the_axis_and_leaves_plain_reads():
    b = GraphBuilder()
    x = b.input(tensor(2, 3, 5, 4))
    swapped = b.op("permute", x, dims=(0, 2, 1, 3))
    b.output(b.op("relu", b.op("reshape", swapped, shape=(2, 5, 12))))
    nest = check(b.build()).nest
    assert [axis.extent for axis in nest.axes] == [2, 5, 3, 4]


def test_row_and_column_reductions_beside_a_pointwise_output():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    b.output(b.op("sum", x, dims=(1,), keepdim=False))
    b.output(b.op("exp", x))
    b.output(b.op("amax", x, dims=(0,), keepdim=True))
    nest = check(b.build()).nest
    assert [axis.name for axis in nest.axes] == ["i0", "i1"]


def test_layer_norm_before_and_after_a_linear_shares_its_axes():
    b = GraphBuilder()
    x, gamma, w = b.input(tensor(4, 6)), b.input(tensor(6)), b.input(tensor(6, 6))
    norm = {"axes": 1, "eps": 1e-5, "weight": True, "bias": False}
    first = b.op("layer_norm", x, gamma, **norm)
    b.output(b.op("layer_norm", b.op("linear", first, w), gamma, **norm))
    nest = check(b.build()).nest
    assert [axis.name for axis in nest.axes] == ["i0", "i1", "r0"]
    assert sum(type(s).__name__ == "Contract" for s in nest.statements) == 1


def test_symbolic_rows_run_at_any_extent():
    import numpy as np
    from fusion_cases import whole

    from kernel_gen.executor.execute import execute
    from kernel_gen.ir.types import Sym

    b = GraphBuilder()
    b.symbol("s0", 1, 64, 4)
    x = b.input(TensorType(F32, (Sym("s0"), 6)))
    b.output(b.op("softmax", x, dim=1))
    lowered = whole(b.build())
    for rows in (1, 5):
        (result,) = execute(lowered.nest, [np.ones((rows, 6), np.float32)])
        np.testing.assert_allclose(result, np.full((rows, 6), 1 / 6), rtol=1e-6)


def test_strict_numerics_leave_numbers_beside_tensors_unrounded():
    b = GraphBuilder()
    x = b.input(tensor(9, dtype=DType.BF16))
    b.output(b.op("mul", x, b.op("full", shape=(), dtype=DType.BF16, value=1.1)))
    lowered = whole(b.build(), "strict")
    values = np.linspace(-3, 3, 9).astype(ml_dtypes.bfloat16)
    (found,) = execute(lowered.nest, [values])
    expected = (values.astype(np.float32) * np.float32(1.1)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found, expected)
    assert (found != values * ml_dtypes.bfloat16(1.1)).any()
