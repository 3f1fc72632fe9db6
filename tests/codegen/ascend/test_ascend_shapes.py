"""One kernel object for a range of shapes: the tiling function decides, tails included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernel_gen.codegen.ascend.kernel.files import with_tuned
from kernel_gen.codegen.ascend.kernel.tiling_text import TunedPoint
from kernel_gen.codegen.ascend.kernel.vector_tiling import LARGEST
from kernel_gen.codegen.ascend.launch import build_tiler
from kernel_gen.errors import Refusal
from kernel_gen.executor.execute import execute
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import BufferRole
from kernel_gen.ir.types import TensorType
from tests.codegen.ascend import ascend_graphs as g
from tests.codegen.ascend.ascend_run import (
    CHIP,
    AscendKernel,
    generated,
    known,
    lowered,
    schedule_of,
)

GRAPHS: dict[str, Graph] = {
    "chain": g.chain("s0", "s1"),
    "bias": g.bias_relu("s0", "s1", dtype=DType.F16),
    "softmax": g.unary("softmax", "s0", "s1", dim=1),
    "column_sum": g.unary("sum", "s0", "s1", dims=(0,), keepdim=False),
    "transposed": g.transposed("s0", "s1"),
    "linear": g.linear("s0", 40, 33, after="relu"),
    "linear_bias": g.linear("s0", 70, "s1", after="bias_relu"),
    "layer_norm": g.layer_norm("s0", "s1", dtype=DType.F16),
    "sum_of_all": g.unary("sum", "s0", "s1", dims=(0, 1), keepdim=False),
    "relu_of_bytes": g.unary("relu", "s0", "s1", dtype=DType.I8),
    "concat": g.concat(("s0", 17), ("s0", 30), dim=1),
    "pad": g.unary("pad", "s0", 33, low=(0, 3), high=(0, 5), value=-1.5),
    "halves": g.halves("s0", 46),
    "rows_of_a_table": g.rows_of(40, "s1", "s0"),
    "batched": g.matmul((3, "s0", 50), (3, 50, 33)),
    "norm_relu_matmul": g.norm_relu_matmul("s0", 48, 24),
}
SHAPES = 50


def _shape(rng: np.random.Generator) -> dict[str, int]:
    """Extents from one element to rows that do not fit the unified buffer."""
    wide = int(rng.choice([rng.integers(1, 70), rng.integers(1, 600), rng.integers(600, 30_000)]))
    tall = int(rng.integers(1, max(2, min(200, 40_000 // wide))))
    return {"s0": tall, "s1": wide}


def _operand(rng: np.random.Generator, kind: TensorType, symbols: dict[str, int]) -> np.ndarray:
    """Numbers around 0; integers are positions as well."""
    shape, dtype = [known(d, symbols) for d in kind.shape], numpy_dtype(kind.dtype)
    if kind.dtype.is_float:
        return rng.standard_normal(shape).astype(dtype)
    least = 0 if kind.dtype is DType.I64 else -40
    return rng.integers(least, 40, shape).astype(dtype)


@pytest.mark.parametrize("name", GRAPHS)
def test_one_object_serves_many_shapes(name: str, tmp_path: Path) -> None:
    made = lowered(GRAPHS[name])
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    kernel = AscendKernel(made.nest, schedule, tmp_path)
    rng = np.random.default_rng(7)
    symbols = {s for b in made.nest.buffers for s in map(str, b.type.shape) if "Sym" in s}
    for _ in range(SHAPES):
        shape = _shape(rng)
        if len(symbols) == 1:
            shape = {"s0": int(rng.integers(1, 150))}
        reads = [
            _operand(rng, b.type, shape)
            for b in made.nest.buffers
            if b.role is not BufferRole.OUTPUT
        ]
        tolerance = 2e-2 if reads[0].dtype.itemsize == 2 else 2e-4
        want = execute(made.nest, reads, precision="f64")
        for have, expected in zip(kernel.run(reads, shape), want, strict=True):
            np.testing.assert_allclose(
                have.astype(np.float64), expected.astype(np.float64), rtol=tolerance,
                atol=tolerance, err_msg=str(shape),
            )  # fmt: skip


def test_tuned_points_decide_for_shapes_nearby(tmp_path: Path) -> None:
    made = lowered(GRAPHS["chain"])
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    points = (TunedPoint((64, 64), 128, 3), TunedPoint((512, 512), 1024, 40))
    kernel = AscendKernel(made.nest, with_tuned(schedule, points), tmp_path)
    assert kernel.tiler([70, 60])[1] == 3
    assert kernel.tiler([500, 600])[1] == 40


def test_the_largest_tile_may_leave_cores_idle(tmp_path: Path) -> None:
    made = lowered(GRAPHS["softmax"])
    assert not isinstance(made, Refusal)
    found = {}
    for lanes in (0, LARGEST):
        schedule = schedule_of(made.nest, lanes=lanes)
        assert not isinstance(schedule, Refusal)
        source = generated(made.nest, schedule, CHIP, f"tiled{abs(lanes)}")
        data, blocks, _ = build_tiler(source, tmp_path)([1000, 200])
        height, width = np.frombuffer(data, np.int64)[2:4]
        found[lanes] = int(height * width), blocks
    assert found[0][0] < found[LARGEST][0]
    assert found[LARGEST][1] < found[0][1] == 40


def test_another_number_of_dimensions_is_refused(tmp_path: Path) -> None:
    made = lowered(GRAPHS["chain"])
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    kernel = AscendKernel(made.nest, schedule, tmp_path)
    with pytest.raises(ValueError, match="another number"):
        kernel.tiler([70])
