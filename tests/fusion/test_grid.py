"""How the executor cuts a nest's grid, and what it reads without gathering."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gen.fusion.execute import execute
from kernel_gen.fusion.grid import blocks
from kernel_gen.fusion.windows import window
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import Index, axis_index
from kernel_gen.ir.loopnest import Axis, Buffer, BufferRole, Compute, Load, LoopNest, Reduce, Store
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


def test_blocks_cover_the_grid_and_leave_reduced_axes_whole() -> None:
    cut = list(blocks(_centred(False), {"i0": ROWS, "i1": COLS}, None))
    assert len(cut) > 1
    assert {block["i1"] for block in cut} == {(0, COLS)}
    rows = [block["i0"] for block in cut]
    assert [row for low, high in rows for row in range(low, high)] == list(range(ROWS))


@pytest.mark.parametrize("transposed", [False, True])
def test_cut_grids_give_what_whole_ones_do(transposed: bool) -> None:
    x = np.random.default_rng(0).random((ROWS, COLS), np.float32)
    (got,) = execute(_centred(transposed), [x])
    want = x - x.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want.T if transposed else want, rtol=1e-6)


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
