"""Hand-written kernels give the right results, break no rule, and their time is plausible."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import numpy as np
import pytest

from kernel_gen.ascend.sim import Simulator

Kernels = Callable[..., Simulator]
_RNG = np.random.default_rng(5)


@pytest.mark.parametrize("count", [16, 1000, 3 * 48 * 2048, 200_003])
def test_add(kernel: Kernels, count: int) -> None:
    x, y = (_RNG.standard_normal(count).astype(np.float16) for _ in range(2))
    z = np.zeros_like(x)
    result = kernel("add").run([x, y], [z], tiling=struct.pack("II", count, 2048), blocks=48)
    assert result.failures == ()
    np.testing.assert_array_equal(z, x + y)


@pytest.mark.parametrize("shape", [(1, 8), (100, 513), (64, 4096)])
def test_softmax(kernel: Kernels, shape: tuple[int, int]) -> None:
    x = (_RNG.standard_normal(shape) * 3).astype(np.float32)
    y = np.zeros_like(x)
    result = kernel("softmax").run([x], [y], tiling=struct.pack("II", *shape), blocks=40)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert result.failures == ()
    np.testing.assert_allclose(y, exact / exact.sum(1, keepdims=True), rtol=3e-6)


def test_layernorm(kernel: Kernels) -> None:
    x = _RNG.standard_normal((70, 1024)).astype(np.float16)
    w, b = (_RNG.standard_normal(1024).astype(np.float16) for _ in range(2))
    y = np.zeros_like(x)
    tiling = struct.pack("IIf", 70, 1024, 1e-5)
    result = kernel("layernorm").run([x, w, b], [y], tiling=tiling, blocks=20)
    wide = x.astype(np.float64)
    norm = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert result.failures == ()
    np.testing.assert_allclose(y, norm * w + b, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("shape", [(16, 64), (64, 48), (256, 256)])
def test_transpose(kernel: Kernels, shape: tuple[int, int]) -> None:
    x = _RNG.standard_normal(shape).astype(np.float16)
    y = np.zeros(shape[::-1], np.float16)
    result = kernel("transpose").run([x], [y], tiling=struct.pack("II", *shape), blocks=4)
    assert result.failures == ()
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("shape", [(16, 16, 16), (96, 80, 112), (256, 128, 256)])
def test_matmul(kernel: Kernels, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a = _RNG.standard_normal((m, k)).astype(np.float16)
    b = _RNG.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    tiling = struct.pack("6I", m, n, k, 64, 64, 64)
    result = kernel("matmul").run([a, b], [c], tiling=tiling, blocks=4)
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    assert result.failures == ()
    np.testing.assert_allclose(c, exact, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("rows", [32, 160, 512])
def test_cube_and_vector_cores_together(kernel: Kernels, rows: int) -> None:
    n, k = 64, 48
    a = _RNG.standard_normal((rows, k)).astype(np.float16)
    b = _RNG.standard_normal((k, n)).astype(np.float16)
    r = _RNG.standard_normal((rows, n)).astype(np.float32)
    out = np.zeros((rows, n), np.float32)
    tiling = struct.pack("III", rows, n, k)
    result = kernel("epilogue").run(
        [a, b, r], [out], tiling=tiling, blocks=3, workspace_bytes=3 * 2 * 32 * n * 4
    )
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0) + r
    assert result.failures == ()
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-5)
    assert result.pipe_busy["M"] > 0
    assert result.pipe_busy["V"] > 0


def _bias_operands(m: int, n: int, k: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    shapes = ((m, k), (k, n), (n,))
    return [rng.standard_normal(shape).astype(np.float16) for shape in shapes]


@pytest.mark.parametrize(("m", "asked"), [(16, 16), (5, 5), (1, 2)])
def test_products_start_from_the_bias_table(kernel: Kernels, m: int, asked: int) -> None:
    n, k = 64, 96
    a, b, row = _bias_operands(m, n, k)
    out = np.empty((m, n), np.float16)
    tiling = struct.pack("IIII", m, n, k, asked)
    result = kernel("bias").run([a, b, row], [out], tiling=tiling, blocks=1)
    assert result.failures == ()
    exact = np.maximum(a.astype(np.float64) @ b + row, 0)
    np.testing.assert_allclose(out, exact, rtol=1e-3, atol=1e-3)


def test_a_product_of_one_row_reads_a_vector(kernel: Kernels) -> None:
    """As documented: with m = 1 the left operand is no fractals. These hold one row in sixteen."""
    n, k = 64, 96
    a, b, row = _bias_operands(1, n, k)
    out = np.empty((1, n), np.float16)
    kernel("bias").run([a, b, row], [out], tiling=struct.pack("IIII", 1, n, k, 1), blocks=1)
    read = np.zeros((1, k))
    read[0, :16] = a[0, :16]  # of the first fractal: its row, then zeros
    np.testing.assert_allclose(out, np.maximum(read @ b + row, 0), rtol=1e-3, atol=1e-3)


def test_unchecked_runs_time_alike_and_leave_outputs_alone(kernel: Kernels) -> None:
    x = np.ones((64, 512), np.float32)
    y = np.full_like(x, 7)
    simulator, tiling = kernel("softmax"), struct.pack("II", 64, 512)
    fast = simulator.run([x], [y], tiling=tiling, blocks=16, check=False)
    assert (y == 7).all()
    full = simulator.run([x], [y], tiling=tiling, blocks=16)
    assert fast.cycles == full.cycles > 0
    assert fast.latency_us == pytest.approx(fast.cycles / 1850)


def test_trace_is_what_perfetto_reads(kernel: Kernels) -> None:
    x = np.ones((4, 64), np.float32)
    tiling = struct.pack("II", 4, 64)
    simulator = kernel("softmax")
    result = simulator.run([x], [x.copy()], tiling=tiling, blocks=2, trace=True)
    assert result.trace is not None
    events = json.loads(json.dumps(result.trace))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["name"] for event in slices} >= {"DataCopyPad", "Exp", "ReduceMax", "GetValue"}
    assert max(event["ts"] + event["dur"] for event in slices) <= result.latency_us * 1.001
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == ["vector core, block 0 (simulated)", "vector core, block 1 (simulated)"]
    by_row: dict[tuple[int, int], int] = {}
    for (
        event
    ) in slices:  # a pipe runs one instruction after the other: Perfetto drops what overlaps
        row = (event["pid"], event["tid"])
        begin, length = (round(1000 * event[key]) for key in ("ts", "dur"))  # as Perfetto reads it
        assert begin >= by_row.get(row, 0)
        assert length >= 0
        by_row[row] = begin + length
    assert simulator.run([x], [x.copy()], tiling=tiling, blocks=2).trace is None


def test_result_names_the_bounding_pipe(kernel: Kernels) -> None:
    x = np.ones(48 * 40 * 2048, np.float16)
    tiling = struct.pack("II", x.size, 8192)
    z = np.empty_like(x)
    result = kernel("add").run([x, x], [z], tiling=tiling, blocks=48, check=False)
    assert result.bounding_pipe == "MTE2"
    assert result.pipe_busy["MTE2"] > result.pipe_busy["V"] > 0
    assert result.gm_bytes == 3 * x.nbytes


def test_a_closed_kernel_loads_again(kernel: Kernels) -> None:
    x = np.ones(64, np.float16)
    tiling = struct.pack("II", 64, 64)
    for _ in range(2):
        simulator = kernel("add")
        z = np.zeros_like(x)
        assert simulator.run([x, x], [z], tiling=tiling, blocks=1).ok
        assert (z == 2).all()
        simulator.close()
