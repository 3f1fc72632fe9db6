"""References for devices that multiply in the narrow type of the tensors."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gen.errors import Refusal
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.types import TensorType
from tuner.checks.narrow_operands import with_narrow_operands
from tuner.checks.reference import reference


def _scaled_product(dtype: DType, *, is_scaled: bool) -> LoopNest:
    """(x · s) @ w, or x @ w."""
    b = GraphBuilder()
    x, s, w = (b.input(TensorType(dtype, shape)) for shape in ((3, 4), (3, 1), (4, 5)))
    left = b.op("mul", x, s) if is_scaled else b.op("add", b.op("matmul", x, w), s)
    b.output(b.op("matmul", left, w) if is_scaled else left)
    graph = b.build()
    made = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(made, Refusal)
    return made.nest


def test_what_overflows_the_type_of_the_tensors_is_infinite() -> None:
    nest = _scaled_product(DType.F16, is_scaled=True)
    x = np.full((3, 4), 300, np.float16)
    scale = np.array([[1.0], [300.0], [2.0]], np.float16)
    w = np.ones((4, 5), np.float16)
    (plain,), _ = reference(nest, [x, scale, w], strict=False)
    (narrow,), _ = reference(with_narrow_operands(nest), [x, scale, w], strict=False)
    assert np.isfinite(plain).all()
    assert np.isinf(narrow[1]).all()
    np.testing.assert_array_equal(narrow[[0, 2]], plain[[0, 2]])


def test_computed_operands_are_rounded_once() -> None:
    nest = _scaled_product(DType.F16, is_scaled=True)
    rng = np.random.default_rng(0)
    x, scale, w = (rng.standard_normal(s).astype(np.float16) for s in ((3, 4), (3, 1), (4, 5)))
    (have,), _ = reference(with_narrow_operands(nest), [x, scale, w], strict=False)
    rounded = (x.astype(np.float64) * scale).astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(have, rounded @ w.astype(np.float64), rtol=1e-12)


@pytest.mark.parametrize(
    "nest",
    [
        _scaled_product(DType.F32, is_scaled=True),
        _scaled_product(DType.F16, is_scaled=False),
    ],
    ids=["fp32", "read as it is"],
)
def test_nothing_else_is_rounded(nest: LoopNest) -> None:
    assert with_narrow_operands(nest) == nest
