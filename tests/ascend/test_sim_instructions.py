"""Every instruction against NumPy: bit for bit where one rounding defines it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from scipy.special import erf

from kernel_gen.ascend.chips import load_chip
from kernel_gen.ascend.sim import Simulator, build

_SOURCE = Path(__file__).parent / "kernels" / "instructions.cpp"
_HALF, _FLOAT, _BRAIN = np.float16, np.float32, ml_dtypes.bfloat16
Call = Callable[..., np.ndarray]


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Call:
    """`call(entry, x, y, result type, results)`: the instruction's result."""
    library = build({"k.cpp": _SOURCE.read_text()}, tmp_path_factory.mktemp("instructions"))

    def run(
        entry: str, x: np.ndarray, y: np.ndarray, dtype: type = _FLOAT, results: int = 512
    ) -> np.ndarray:
        z = np.zeros(results, dtype)
        result = Simulator(library, entry, load_chip("910b1")).run(
            [x, y], [z], tiling=b"", blocks=1
        )
        assert result.failures == ()
        assert result.cycles > 0
        return z

    return run


def _pair(dtype: type, count: int = 512) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x, y = ((rng.standard_normal(count) * 3).astype(dtype) for _ in range(2))
    return x, np.where(y == 0, 1, y).astype(dtype)


_EXACT: dict[str, Callable[[np.ndarray, np.ndarray, type], np.ndarray]] = {
    "add": lambda x, y, t: np.where(np.arange(512) < 500, x + y, 0),
    "sub": lambda x, y, t: x - y,
    "mul": lambda x, y, t: x * y,
    "div": lambda x, y, t: x / y,
    "max": lambda x, y, t: np.maximum(x, y),
    "min": lambda x, y, t: np.minimum(x, y),
    "adds": lambda x, y, t: x + t(0.3),
    "muls": lambda x, y, t: x * t(0.3),
    "leaky": lambda x, y, t: np.where(x >= 0, x, x * t(0.1)),
    "relu": lambda x, y, t: np.maximum(x, 0),
    "abs": lambda x, y, t: np.abs(x),
    "floor": lambda x, y, t: np.floor(x),
    "power": lambda x, y, t: x * x,
}


@pytest.mark.parametrize("dtype", [_HALF, _FLOAT])
@pytest.mark.parametrize("name", sorted(_EXACT))
def test_arithmetic_rounds_once(call: Call, name: str, dtype: type) -> None:
    x, y = _pair(dtype)
    suffix = "half" if dtype is _HALF else "float"
    expected = _EXACT[name](x, y, dtype).astype(dtype)
    np.testing.assert_array_equal(call(f"{name}_{suffix}", x, y, dtype), expected)


@pytest.mark.parametrize("dtype", [_HALF, _FLOAT])
@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("exp", np.exp),
        ("tanh", np.tanh),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("erf", erf),
    ],
)
def test_transcendentals_within_2_ulp(
    call: Call, name: str, exact: Callable[[np.ndarray], np.ndarray], dtype: type
) -> None:
    x, y = _pair(dtype)
    got = call(f"{name}_{'half' if dtype is _HALF else 'float'}", x, y, dtype)
    want = exact(x.astype(np.float64))
    ulp = np.abs(np.spacing(want.astype(dtype))).astype(np.float64)
    assert np.max(np.abs(got.astype(np.float64) - want) / ulp) <= 2.0


def test_fused_and_mixed_forms(call: Call) -> None:
    x, y = _pair(_FLOAT)
    fused = (x.astype(np.float64) * y + (x + _FLOAT(1))).astype(_FLOAT)
    np.testing.assert_array_equal(call("muladd", x, y), fused)
    h, g = _pair(_HALF)
    np.testing.assert_array_equal(call("axpy", h, g), h.astype(_FLOAT) * _FLOAT(0.5))


def test_integers(call: Call) -> None:
    i = np.arange(-256, 256, dtype=np.int32) * 77_777_777
    signed = (i << 3 & 2**31 - 1) | (i & -(2**31))  # the sign stays
    np.testing.assert_array_equal(call("shift", i, i, np.int32), signed)
    w = i.view(np.uint32)
    np.testing.assert_array_equal(call("shift_word", w, w, np.uint32), w << 3)
    s = np.arange(-256, 256, dtype=np.int16) * 100
    t = s[::-1].copy()
    expected = np.concatenate([~s[:256], s[256:] | t[256:]])
    np.testing.assert_array_equal(call("bits", s, t, np.int16), expected)


def test_masks_strides_and_the_counter(call: Call) -> None:
    x, y = _pair(_FLOAT)
    lane = np.arange(512)
    np.testing.assert_array_equal(call("masked", x, y), np.where(lane % 64 < 40, x + y, 0))
    np.testing.assert_array_equal(call("bitmask", x, y), np.where(lane % 2 == 0, x + y, 0))
    np.testing.assert_array_equal(call("counter", x, y), np.where(lane < 300, x + y, 0))
    np.testing.assert_array_equal(call("rows", x, y), x * np.tile(y[:64], 8))
    blocks = x.reshape(32, 2, 8)[:, 0].reshape(-1)
    np.testing.assert_array_equal(call("strided", x, y, results=256), blocks)


def test_conversions(call: Call) -> None:
    x, y = _pair(_FLOAT)
    x[:4] = [1e6, -1e6, 2.5, 60001.0]
    with np.errstate(over="ignore"):
        nearest = x.astype(_HALF)
    np.testing.assert_array_equal(call("cast_half", x, y, _HALF), nearest)
    low = call("cast_half_floor", x, y, _HALF)[2:].astype(np.float64)
    assert (low <= x[2:]).all()
    assert (np.nextafter(low.astype(_HALF), _HALF(np.inf)).astype(np.float64) > x[2:]).all()
    np.testing.assert_array_equal(call("cast_brain", x, y, _BRAIN), x.astype(_BRAIN))
    truncated = (x.view(np.uint32) >> 16).astype(np.uint16).view(_BRAIN)
    np.testing.assert_array_equal(call("cast_brain_trunc", x, y, _BRAIN), truncated)
    brain = x.astype(_BRAIN)
    np.testing.assert_array_equal(call("cast_float", brain, brain), brain.astype(_FLOAT))
    np.testing.assert_array_equal(call("cast_rint", x, y, np.int32), np.rint(x).astype(np.int32))
    np.testing.assert_array_equal(call("cast_trunc", x, y, np.int32), np.trunc(x).astype(np.int32))
    away = np.trunc(x + np.copysign(0.5, x)).clip(-32768, 32767).astype(np.int16)
    np.testing.assert_array_equal(call("cast_round", x, y, np.int16), away)
    h, g = _pair(_HALF)
    h[:2] = [300, -300]
    floors = np.floor(h).clip(-128, 127).astype(np.int8)
    np.testing.assert_array_equal(call("cast_int8", h, g, np.int8), floors)
    np.testing.assert_array_equal(call("cast_masked", h, g), h.astype(_FLOAT))
    i = np.arange(-256, 256, dtype=np.int32)
    np.testing.assert_array_equal(call("cast_int64", i, i, np.int64), i.astype(np.int64))


def test_comparisons_and_selection(call: Call) -> None:
    x, y = _pair(_FLOAT)
    bits = np.packbits(x < y, bitorder="little")
    np.testing.assert_array_equal(call("compare", x, y, np.uint8, 64), bits)
    h, g = _pair(_HALF)
    bits = np.packbits(h >= 0, bitorder="little")
    np.testing.assert_array_equal(call("compares", h, g, np.uint8, 64), bits)
    larger = np.where(np.arange(512) < 500, np.where(x > y, x, y), 0)
    np.testing.assert_array_equal(call("select", x, y), larger)
    np.testing.assert_array_equal(call("select_scalar", x, y), np.where(x > 0, x, _FLOAT(-1)))


def _tree(values: np.ndarray) -> np.ndarray:
    """Sums along the last axis, pairs of neighbours first."""
    while values.shape[-1] > 1:
        if values.shape[-1] % 2:
            odd = values[..., -1:]
            values = np.concatenate([values[..., :-1:2] + values[..., 1::2], odd], -1)
        else:
            values = values[..., ::2] + values[..., 1::2]
    return values[..., 0]


def test_reductions(call: Call) -> None:
    x, y = _pair(_FLOAT)
    rows = x.reshape(8, 64)
    np.testing.assert_array_equal(call("whole_sum", x, y, results=16)[:8], _tree(rows[:, :50]))
    np.testing.assert_array_equal(call("whole_min", x, y, results=16)[:8], rows.min(1))
    blocks = _tree(x.reshape(64, 8))
    np.testing.assert_array_equal(call("block_sum", x, y, results=64), blocks)
    np.testing.assert_array_equal(call("pair_sum", x, y, results=256), x[::2] + x[1::2])
    sums = np.concatenate([_tree(x[:448].reshape(7, 64)), _tree(x[448:500][None])])
    assert call("reduce_sum", x, y, results=8)[0] == _tree(sums)
    most = call("reduce_max", x, y, results=8)
    assert most[0] == x[:500].max()
    assert most[1:2].view(np.uint32)[0] == x[:500].argmax()
    h, g = _pair(_HALF)
    pairs = call("whole_max", h, g, _HALF, 16)[:8]
    np.testing.assert_array_equal(pairs[::2], h.reshape(4, 128).max(1))
    np.testing.assert_array_equal(pairs[1::2].view(np.uint16), h.reshape(4, 128).argmax(1))
    np.testing.assert_array_equal(
        call("reduce_half", h, g, _HALF, 16)[0], _tree(_tree(h.reshape(4, 128)))
    )


def test_moving_lanes(call: Call) -> None:
    x, y = _pair(_FLOAT)
    np.testing.assert_array_equal(call("brcb", x, y, results=128), np.repeat(x[:16], 8))
    np.testing.assert_array_equal(call("ramp", x, y), np.arange(5, 517, dtype=_FLOAT))
    i = np.zeros(512, np.int32)
    np.testing.assert_array_equal(call("ramp_int", i, i, np.int32), np.arange(-3, 509))
    np.testing.assert_array_equal(call("gather", x, y), x[::-1])
    h, g = _pair(_HALF)
    blocks = h.reshape(16, 2, 16)[:8, 0].reshape(-1)
    np.testing.assert_array_equal(call("gatherb", h, g, _HALF, 128), blocks)
    square = h[:256].reshape(16, 16)
    np.testing.assert_array_equal(call("transpose16", square, square, _HALF, 256), square.T.ravel())
    tall = x[:128].reshape(16, 8)
    np.testing.assert_array_equal(call("transpose_float", tall, tall, results=128), tall.T.ravel())
    np.testing.assert_array_equal(call("broadcast_rows", x[:16], y[:16]), np.tile(x[:16], 32))
    np.testing.assert_array_equal(call("broadcast_columns", x[:32], y[:32]), np.repeat(x[:32], 16))
    skipped = h.reshape(16, 2, 16)[:, 0].reshape(-1)
    np.testing.assert_array_equal(call("copy_strided", h, g, _HALF, 256), skipped)
    pairs = call("sort", x[:64], y[:64], results=128).reshape(2, 32, 2)
    for run in range(2):
        part = x[run * 32 : run * 32 + 32]
        np.testing.assert_array_equal(pairs[run, :, 0], np.sort(part)[::-1])
        order = pairs[run, :, 1].view(np.uint32)
        np.testing.assert_array_equal(x[order], pairs[run, :, 0])
