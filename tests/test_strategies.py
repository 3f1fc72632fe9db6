"""The comparison with the reference: lets other orders of adding pass, and no wrong result."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from kernel_gen.ir.arrays import Array
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.types import TensorType
from tests.strategies import assert_outputs_match

LENGTH = 129
Product = Callable[[Array, Array], Array]


def scaled_product() -> Graph:
    """(x @ y) / 32 of [4, n] and [n, 4]."""
    b = GraphBuilder()
    x, y = (b.input(TensorType(DType.F32, shape)) for shape in ((4, LENGTH), (LENGTH, 4)))
    b.output(b.op("mul", b.op("matmul", x, y), b.op("full", shape=(), dtype="f32", value=2**-5)))
    return b.build()


def cancelling() -> list[Array]:
    """Operands of a product whose terms are of size 16, and whose sums are of size 1e-3."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-4, 4, (4, LENGTH))
    y = rng.uniform(-4, 4, (LENGTH, 4))
    x[:, -4:] = np.linalg.solve(y[-4:].T, 1e-3 - (x[:, :-4] @ y[:-4]).T).T
    return [x.astype(np.float32), y.astype(np.float32)]


def summed(x: Array, y: Array, dtype: type = np.float32) -> Array:
    """The product, one term after the other."""
    total = np.zeros((x.shape[0], y.shape[1]), dtype)
    for k in range(x.shape[1]):
        total += np.outer(x[:, k], y[k]).astype(dtype)
    return total.astype(np.float32)


def without(position: int) -> Product:
    return lambda x, y: summed(np.delete(x, position, 1), np.delete(y, position, 0))


def narrowed(x: Array, y: Array) -> Array:
    return summed(x.astype(ml_dtypes.bfloat16).astype(np.float32), y)


ORDERS: dict[str, Product] = {
    "ascending": summed,
    "descending": lambda x, y: summed(x[:, ::-1], y[::-1]),
    "in_lanes": lambda x, y: sum(summed(x[:, k::8], y[k::8]) for k in range(8)),
    "library": np.matmul,
}
FAULTS: dict[str, Product] = {
    "first_term_left_out": without(0),
    "last_term_left_out": without(LENGTH - 1),
    "term_twice": lambda x, y: summed(x, y) + np.outer(x[:, 7], y[7]),
    "operand_in_bf16": narrowed,
    "sum_in_fp16": lambda x, y: summed(x, y, np.float16),
}


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_terms_that_cancel_passes(order: str) -> None:
    x, y = cancelling()
    assert_outputs_match(scaled_product(), [x, y], [ORDERS[order](x, y) / np.float32(32)])


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen_beside_terms_that_cancel(fault: str) -> None:
    x, y = cancelling()
    with pytest.raises(AssertionError):
        assert_outputs_match(scaled_product(), [x, y], [FAULTS[fault](x, y) / np.float32(32)])
