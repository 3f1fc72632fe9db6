"""Hand-written kernels give the right results, break no rule, and their time is plausible."""

from __future__ import annotations

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


def test_unchecked_runs_time_alike_and_leave_outputs_alone(kernel: Kernels) -> None:
    x = np.ones((64, 512), np.float32)
    y = np.full_like(x, 7)
    simulator, tiling = kernel("softmax"), struct.pack("II", 64, 512)
    fast = simulator.run([x], [y], tiling=tiling, blocks=16, check=False)
    assert (y == 7).all()
    full = simulator.run([x], [y], tiling=tiling, blocks=16)
    assert fast.cycles == full.cycles > 0
    assert fast.latency_us == pytest.approx(fast.cycles / 1850)


def test_result_names_the_bounding_pipe(kernel: Kernels) -> None:
    x = np.ones(48 * 40 * 2048, np.float16)
    tiling = struct.pack("II", x.size, 8192)
    z = np.empty_like(x)
    result = kernel("add").run([x, x], [z], tiling=tiling, blocks=48, check=False)
    assert result.bounding_pipe == "MTE2"
    assert result.pipe_busy["MTE2"] > result.pipe_busy["V"] > 0
    assert result.gm_bytes == 3 * x.nbytes
