"""Groups as the fusion stage lowers them, around one matrix product, through the template."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernel_gen.errors import Refusal
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.loopnest import BufferRole, LoopNest
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.codegen.matmul_nests import operands
from tests.codegen.matmul_run import TEMPLATE, Bench, Check, poisoned

OUTPUT = BufferRole.OUTPUT


@pytest.fixture(scope="session")
def bench(compiler: Compiler) -> Bench:
    return Bench(compiler, host_target())


class _Program:
    """A graph builder with the shorthands of these tests."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()

    def x(self, *shape: int, dtype: DType = DType.F32) -> int:
        return self.builder.input(TensorType(dtype, shape))

    def w(self, *shape: int) -> int:
        return self.builder.input(TensorType(DType.F32, shape), kind=InputKind.PARAMETER)

    def op(self, name: str, *values: int, **attrs: object) -> int:
        made = self.builder.op(name, *values, **attrs)
        assert isinstance(made, int)
        return made

    def nest(self, *outputs: int) -> LoopNest:
        for value in outputs:
            self.builder.output(value)
        graph = self.builder.build()
        lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
        assert not isinstance(lowered, Refusal), lowered
        return lowered.nest


def _norm_linear_gelu(p: _Program) -> LoopNest:
    x = p.op(
        "layer_norm", p.x(2, 9, 40), p.w(40), p.w(40), axes=1, eps=1e-5, weight=True, bias=True
    )
    return p.nest(p.op("gelu", p.op("linear", x, p.w(50, 40), p.w(50)), approximate="none"))


def _heads(p: _Program, y: int) -> int:
    return p.op("permute", p.op("reshape", y, shape=(2, 9, 4, 10)), dims=(0, 2, 1, 3))


def _query_key_value(p: _Program) -> LoopNest:
    y = p.op("linear", p.x(2, 9, 40), p.w(120, 40), p.w(120))
    parts = [p.op("slice", y, dim=2, start=s, stop=s + 40, step=1) for s in (0, 40, 80)]
    return p.nest(*(_heads(p, part) for part in parts))


def _gated(p: _Program) -> LoopNest:
    y = p.op("linear", p.x(13, 24), p.w(70, 24))
    gate = p.op("slice", y, dim=1, start=0, stop=35, step=1)
    up = p.op("slice", y, dim=1, start=35, stop=70, step=1)
    return p.nest(p.op("mul", p.op("silu", gate), up))


def _gated_halves(p: _Program) -> LoopNest:
    """Each product widens the input by a cast of its own; the sums still run along one axis."""
    x = p.x(3, 24, dtype=DType.BF16)
    gate, up = (p.op("linear", x, p.x(35, 24, dtype=DType.BF16)) for _ in "gu")
    return p.nest(p.op("mul", p.op("silu", gate), up))


def _heads_back(p: _Program) -> LoopNest:
    x = p.op("permute", p.x(2, 4, 9, 10), dims=(0, 2, 1, 3))
    y = p.op("linear", p.op("reshape", x, shape=(2, 9, 40)), p.w(30, 40))
    return p.nest(p.op("add", y, p.x(2, 9, 30)))


def _scores(p: _Program) -> LoopNest:
    key = p.op("permute", p.x(2, 3, 17, 20), dims=(0, 1, 3, 2))
    scale = p.builder.constant(np.float32(0.25))
    return p.nest(p.op("mul", p.op("matmul", p.x(2, 3, 11, 20), key), scale))


def _embedding(p: _Program) -> LoopNest:
    rows = p.op("take", p.w(9, 16), p.x(12, dtype=DType.I64), dim=0)
    return p.nest(p.op("relu", p.op("linear", rows, p.w(20, 16))))


def _padded(p: _Program) -> LoopNest:
    x = p.op("pad", p.x(7, 10), low=(2, 3), high=(1, 0), value=0.5)
    return p.nest(p.op("matmul", x, p.w(13, 33)))


def _joined(p: _Program) -> LoopNest:
    x = p.op("concat", p.x(6, 10), p.x(6, 21), dim=1)
    return p.nest(p.op("linear", x, p.w(18, 31), p.w(18)))


def _input_again(p: _Program) -> LoopNest:
    x = p.x(8, 32)
    return p.nest(p.op("add", p.op("linear", x, p.w(32, 32)), x))


def _patches(p: _Program) -> LoopNest:
    """A depth of three axes, the innermost shorter than a vector, on both sides of the product."""
    x = p.op("reshape", p.x(2, 3, 8, 8), shape=(2, 3, 2, 4, 2, 4))
    x = p.op("permute", x, dims=(0, 2, 4, 1, 3, 5))
    return p.nest(p.op("matmul", p.op("reshape", x, shape=(2, 4, 48)), p.x(48, 17)))


def _norm_after(p: _Program) -> LoopNest:
    """The end of a layer: its sum goes on as residual, its norm into the next layer."""
    y = p.op("linear", p.x(2, 9, 40), p.w(52, 40), p.w(52))
    total = p.op("add", y, p.x(2, 9, 52))
    norm = p.op("layer_norm", total, p.w(52), p.w(52), axes=1, eps=1e-5, weight=True, bias=True)
    return p.nest(total, norm)


def _norm_of_heads(p: _Program) -> LoopNest:
    """A norm along a part of the columns."""
    y = p.op("reshape", p.op("linear", p.x(2, 9, 40), p.w(60, 40)), shape=(2, 9, 5, 12))
    norm = p.op("rms_norm", y, p.w(12), axes=1, eps=1e-6, weight=True)
    return p.nest(p.op("permute", norm, dims=(0, 2, 1, 3)))


def _classes(p: _Program) -> LoopNest:
    y = p.op("linear", p.op("relu", p.x(13, 40)), p.w(70, 40), p.w(70))
    return p.nest(p.op("softmax", y, dim=1), p.op("argmax", y, dims=(1,), keepdim=False))


def _softmax_over_rows(p: _Program) -> LoopNest:
    y = p.op("matmul", p.x(31, 20), p.x(20, 45))
    return p.nest(p.op("softmax", y, dim=0))


def _feed_forward_gate(p: _Program) -> LoopNest:
    """Residual sum, norm, two products of it, and their gate: the norm is computed when rows are
    packed, the gate on the register tiles."""
    total = p.op("add", p.x(2, 9, 40), p.x(2, 9, 40))
    h = p.op("rms_norm", total, p.w(40), axes=1, eps=1e-6, weight=True)
    gate, up = (p.op("linear", h, p.w(70, 40)) for _ in range(2))
    return p.nest(p.op("mul", p.op("silu", gate), up))


def _three_heads(p: _Program) -> LoopNest:
    x = p.x(2, 9, 40)
    parts = [p.op("linear", x, p.w(40, 40), p.w(40)) for _ in range(3)]
    return p.nest(*(_heads(p, part) for part in parts))


def _gate_and_norm(p: _Program) -> LoopNest:
    """Two products, a gate, and a norm along the gated rows."""
    x = p.x(21, 40)
    gate, up = p.op("matmul", x, p.w(40, 33)), p.op("matmul", x, p.x(40, 33))
    gated = p.op("mul", p.op("sigmoid", gate), up)
    norm = p.op("layer_norm", gated, axes=1, eps=1e-5, weight=False, bias=False)
    return p.nest(gated, norm)


PROGRAMS = [
    _feed_forward_gate,
    _three_heads,
    _gate_and_norm,
    _norm_after,
    _norm_of_heads,
    _classes,
    _softmax_over_rows,
    _patches,
    _norm_linear_gelu,
    _query_key_value,
    _gated,
    _gated_halves,
    _heads_back,
    _scores,
    _embedding,
    _padded,
    _joined,
    _input_again,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_lowered_groups_are_right(bench: Bench, program: Callable[[_Program], LoopNest]) -> None:
    nest = program(_Program())
    assert TEMPLATE.refuse(nest, bench.target) is None
    inputs = [abs(a) % 9 if a.dtype == np.int64 else a for a in operands(nest, seed=5)]
    seeds = TEMPLATE.space(nest, bench.target).seeds[:3]
    bench.check_all(Check(nest, dict(seed), inputs=inputs) for seed in seeds)


@pytest.mark.parametrize("split", ["rows", "cols", "batch", "depth"])
def test_packed_rows_stay_in_their_place(bench: Bench, split: str) -> None:
    nest = _patches(_Program())
    space = TEMPLATE.space(nest, bench.target)
    seed = next(dict(s) for s in space.seeds if dict(s)["left"] == "call")
    point = {**seed, "split": split, "mc": 1, "threads": "all", "parts": 2}
    bench.check_all([Check(nest, point, (1, 1, 1, 3, 3, 3))])


def _gradient_of_a_weight(p: _Program) -> LoopNest:
    """Sums over images and positions, which neither operand walks as one axis."""
    y = p.op("permute", p.x(3, 9, 5, 8), dims=(1, 0, 2, 3))
    x = p.op("permute", p.x(5, 8, 3, 7), dims=(2, 0, 1, 3))
    y, x = p.op("reshape", y, shape=(9, 120)), p.op("reshape", x, shape=(120, 7))
    return p.nest(p.op("matmul", y, x))


@pytest.mark.parametrize("program", [_patches, _gradient_of_a_weight, _padded, _joined])
def test_a_depth_of_several_axes_is_cut_at_its_outermost(
    bench: Bench, program: Callable[[_Program], LoopNest]
) -> None:
    nest = program(_Program())
    found = (dict(seed) for seed in TEMPLATE.space(nest, bench.target).seeds)
    seeds = [seed for seed in found if seed["left"] != "pointers"]  # they are of whole rows
    points = [
        {**seed, "split": "depth", "parts": parts, "kc": kc, "threads": "all"}
        for seed, parts, kc in ((seeds[0], 1, 8), (seeds[0], 3, 512), (seeds[-1], 2, 16))
    ]
    bench.check_all(Check(nest, point, (1, 3)) for point in points)


def test_an_index_outside_its_table_is_an_error(bench: Bench) -> None:
    nest = _embedding(_Program())
    for bad in (-1, 9, 2**40):
        index = np.zeros(12, np.int64)
        index[7] = bad
        inputs = [index if a.dtype == np.int64 else a for a in operands(nest, seed=5)]
        outputs = [poisoned(nest, i) for i, b in enumerate(nest.buffers) if b.role is OUTPUT]
        kernel = bench.build(nest, bench.seed(nest))
        assert not isinstance(kernel, Refusal)
        assert kernel.run([*inputs, *outputs], n_threads=2) != 0


def test_refusals_name_their_reason(bench: Bench) -> None:
    p = _Program()
    x = p.op("matmul", p.x(4, 5), p.x(5, 6))
    pooled = p.nest(p.op("softmax", p.op("sum", x, dims=(1,), keepdim=False), dim=0))
    refusal = TEMPLATE.refuse(pooled, bench.target)
    assert refusal is not None
    assert refusal.code in ("reduction-beside-product", "products-differ")
    p = _Program()
    chain = p.nest(p.op("matmul", p.op("matmul", p.x(4, 5), p.x(5, 6)), p.x(6, 7)))
    refusal = TEMPLATE.refuse(chain, bench.target)
    assert refusal is not None
    assert refusal.code in ("products-chained", "products-differ")
    p = _Program()
    plain = p.nest(p.op("add", p.x(4, 5), p.x(4, 5)))
    refusal = TEMPLATE.refuse(plain, bench.target)
    assert refusal is not None
    assert refusal.code == "no-product"
