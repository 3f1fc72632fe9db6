"""How the executor cuts a nest's grid, and what it reads without gathering."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from kernel_gen.executor import grid
from kernel_gen.executor.execute import execute
from kernel_gen.executor.grid import pieces, reduce_cut, store_cuts
from kernel_gen.executor.windows import window
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import Index, axis_index
from kernel_gen.ir.loopnest import (
    Axis,
    Buffer,
    BufferRole,
    Compute,
    Contract,
    Load,
    LoopNest,
    Reduce,
    Store,
)
from kernel_gen.ir.types import TensorType

ROWS, COLS = 700, 301


def _centred(transposed: bool) -> LoopNest:
    """x - mean(x, rows) over x[i0, i1], stored as it is or transposed."""
    i, j = axis_index("i0"), axis_index("i1")
    out = (COLS, ROWS) if transposed else (ROWS, COLS)
    return LoopNest(
        (Axis("i0", ROWS), Axis("i1", COLS)),
        (
            Buffer(TensorType(DType.F32, (ROWS, COLS)), BufferRole.INPUT),
            Buffer(TensorType(DType.F32, out), BufferRole.OUTPUT),
        ),
        (
            Load(0, (i, j), DType.F32),
            Reduce("sum", 0, ("i1",), DType.F32),
            Compute("sub", (0, 1), DType.F32),
        ),
        (Store(1, (j, i) if transposed else (i, j), 2),),
    )


def test_stores_are_cut_into_what_stays_in_a_cache() -> None:
    nest = _centred(False)
    ranges = {"i0": (0, ROWS), "i1": (0, COLS)}
    ((stores, sizes),) = store_cuts(nest, nest.statement_axes(), ranges, None)
    assert len(stores) == 1
    assert set(sizes) == {"i0"}
    rows = [row for low, high in pieces((0, ROWS), sizes["i0"]) for row in range(low, high)]
    assert rows == list(range(ROWS))


def test_reductions_of_much_are_folded_in_parts() -> None:
    """A mean over rows of each row's sum of exponentials: only a few rows at a time are held."""
    i, j = axis_index("r0"), axis_index("r1")
    rows, cols = 300, 40_000
    nest = LoopNest(
        (Axis("r0", rows), Axis("r1", cols)),
        (
            Buffer(TensorType(DType.F32, (rows, cols)), BufferRole.INPUT),
            Buffer(TensorType(DType.F32, ()), BufferRole.OUTPUT),
        ),
        (
            Load(0, (i, j), DType.F32),
            Reduce("amax", 0, ("r1",), DType.F32),
            Compute("sub", (0, 1), DType.F32),
            Compute("exp", (2,), DType.F32),
            Reduce("sum", 3, ("r1",), DType.F32),
            Reduce("sum", 4, ("r0",), DType.F32),
        ),
        (Store(1, (), 5),),
    )
    sizes = {"r0": rows, "r1": cols}
    whole, inner = nest.statements[5], nest.statements[4]
    assert isinstance(whole, Reduce)
    assert isinstance(inner, Reduce)
    assert reduce_cut(nest, whole, nest.statement_axes(), sizes) == ("r0", 1)
    assert reduce_cut(nest, inner, nest.statement_axes(), {**sizes, "r0": 1}) is None
    x = np.random.default_rng(0).standard_normal((rows, cols), np.float32)
    tracemalloc.start()
    (got,) = execute(nest, [x], precision="f64")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(got, np.exp(x - x.max(1, keepdims=True)).sum(dtype="f8"), rtol=1e-6)
    assert peak < x.size  # bytes: an eighth of one value in float64


@pytest.mark.parametrize("transposed", [False, True])
def test_cut_grids_give_what_whole_ones_do(transposed: bool) -> None:
    x = np.random.default_rng(0).random((ROWS, COLS), np.float32)
    (got,) = execute(_centred(transposed), [x])
    want = x - x.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want.T if transposed else want, rtol=1e-6)


@pytest.mark.parametrize(("points", "cut"), [(300, {"i0", "i1"}), (10, {"i0", "i1", "i2"})])
def test_what_is_reduced_is_whole_though_results_are_cut_along_it(
    monkeypatch: pytest.MonkeyPatch, points: int, cut: set[str]
) -> None:
    """Each plane of x[i0, i1, i2] is more than a block, and is reduced along both its axes."""
    monkeypatch.setattr(grid, "_BLOCK_POINTS", points)
    i, j, k = axis_index("i0"), axis_index("i1"), axis_index("i2")
    shape = (2, 24, 21)
    nest = LoopNest(
        tuple(Axis(f"i{n}", extent) for n, extent in enumerate(shape)),
        (
            Buffer(TensorType(DType.F32, shape), BufferRole.INPUT),
            Buffer(TensorType(DType.F32, shape), BufferRole.OUTPUT),
        ),
        (
            Load(0, (i, j, k), DType.F32),
            Reduce("sum", 0, ("i1",), DType.F32),
            Compute("sub", (0, 1), DType.F32),
            Compute("mul", (2, 2), DType.F32),
            Reduce("sum", 3, ("i1",), DType.F32),
            Reduce("amax", 0, ("i2",), DType.F32),
            Compute("mul", (2, 4), DType.F32),
            Compute("add", (6, 5), DType.F32),
        ),
        (Store(1, (i, j, k), 7),),
    )
    ranges = {axis.name: (0, extent) for axis, extent in zip(nest.axes, shape, strict=True)}
    ((_, sizes),) = store_cuts(nest, nest.statement_axes(), ranges, None)
    assert set(sizes) == cut
    x = np.random.default_rng(0).random(shape, np.float32)
    centred = x - x.sum(1, keepdims=True, dtype="f8")
    want = centred * (centred**2).sum(1, keepdims=True) + x.max(2, keepdims=True)
    (got,) = execute(nest, [x], precision="f64")
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_windows_are_axes_and_constants_within_the_array() -> None:
    block = {"i0": (2, 5), "i1": (0, 4)}
    array = np.arange(60).reshape(4, 3, 5)
    found = window((axis_index("i1"), Index((), 1), axis_index("i0")), block, array.shape)
    assert found is not None
    np.testing.assert_array_equal(found.of(array, ("i0", "i1")), array[0:4, 1, 2:5].T)
    assert found.of(array, ("i0", "b", "i1")).shape == (3, 1, 4)
    i0 = axis_index("i0")
    assert window((i0, i0, i0), block, (9, 9, 9)) is None  # a diagonal
    assert window((i0,), block, (4,)) is None  # outside


def _product(rows: int, cols: int, depth: int, *, normed: bool) -> LoopNest:
    """x @ w.T, or that less each row's largest value."""
    i, j, k = axis_index("i0"), axis_index("i1"), axis_index("r0")
    tail = (Reduce("amax", 2, ("i1",), DType.F32), Compute("sub", (2, 3), DType.F32))
    return LoopNest(
        (Axis("i0", rows), Axis("i1", cols), Axis("r0", depth)),
        (
            Buffer(TensorType(DType.F32, (rows, depth)), BufferRole.INPUT),
            Buffer(TensorType(DType.F32, (cols, depth)), BufferRole.CONSTANT),
            Buffer(TensorType(DType.F32, (rows, cols)), BufferRole.OUTPUT),
        ),
        (
            Load(0, (i, k), DType.F32),
            Load(1, (j, k), DType.F32),
            Contract(0, 1, ("r0",), DType.F32),
            *(tail if normed else ()),
        ),
        (Store(2, (i, j), 4 if normed else 2),),
    )


@pytest.mark.parametrize(("normed", "cut"), [(False, {"i1": 512}), (True, {})])
def test_products_are_cut_by_their_operands_unless_a_reduction_would_repeat_them(
    normed: bool, cut: dict[str, int]
) -> None:
    rows, cols, depth = 3, 2000, 2048
    nest = _product(rows, cols, depth, normed=normed)
    ranges = {"i0": (0, rows), "i1": (0, cols), "r0": (0, depth)}
    ((_, sizes),) = store_cuts(nest, nest.statement_axes(), ranges, None)
    assert sizes == cut
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((n, depth), np.float32) for n in (rows, cols))
    (got,) = execute(nest, [x, w], precision="f64")
    want = x.astype("f8") @ w.T.astype("f8")
    np.testing.assert_allclose(
        got, want - want.max(1, keepdims=True) if normed else want, rtol=1e-5, atol=1e-4
    )
