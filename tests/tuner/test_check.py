import contextlib
import ctypes
import math

import ml_dtypes
import numpy as np
import pytest
from tuner_nests import buffer, scale_nest, sum_nest, threshold_nest

from kernel_gen.executor.execute import execute
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.index import Index, ValueTerm
from kernel_gen.ir.loopnest import Axis, BufferRole, Compute, Load, LoopNest, Statement, Store
from kernel_gen.ir.types import TensorType, ValueDomain
from tuner.checks.boundary import with_ambiguity
from tuner.checks.compare import Tolerance, mismatch, reduction_length, tolerance
from tuner.checks.conditioning import ill_conditioned
from tuner.checks.operands import index_bounds, mixed_operands, plain_operands
from tuner.checks.reference import reference
from tuner.child import shared_memory
from tuner.child.messages import NestCheck
from tuner.child.outputs import OutputBuffer
from tuner.devices.check_set import build_check

TIGHT = Tolerance(1e-6, 1e-6)
OPEN = ValueDomain()


def compare(actual: list[float], expected: list[float], allowed: Tolerance = TIGHT) -> str | None:
    return mismatch(np.array(actual, np.float32), np.array(expected, np.float32), allowed)


def test_equal_values_and_specials_pass() -> None:
    values = [0.0, 1.0, math.nan, math.inf, -math.inf]
    assert compare(values, values) is None


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (1.1, 1.0),
        (math.nan, 1.0),
        (1.0, math.nan),
        (5.0, math.inf),
        (math.inf, 5.0),
        (-math.inf, math.inf),
    ],
)
def test_wrong_values_are_named(actual: float, expected: float) -> None:
    found = compare([1.0, actual], [1.0, expected])
    assert found is not None
    assert "1 of 2 elements differ; first at (1,)" in found


def test_an_overflow_of_the_output_type_is_right() -> None:
    actual = np.array([math.inf, math.inf], np.float16)
    assert mismatch(actual[:1], np.array([70000.0], np.float32), TIGHT) is None
    assert mismatch(actual[:1], np.array([60000.0], np.float32), TIGHT) is not None


def test_ambiguous_elements_are_exempt() -> None:
    actual, expected = np.array([True, False]), np.array([True, True])
    assert mismatch(actual, expected, Tolerance(0, 0)) is not None
    assert mismatch(actual, expected, Tolerance(0, 0), np.array([False, True])) is None


def test_the_last_element_beyond_a_chunk_is_compared() -> None:
    expected = np.zeros(200_001, np.float32)
    actual = expected.copy()
    actual[-1] = 1.0
    found = mismatch(actual, expected, TIGHT)
    assert found is not None
    assert "(200000,)" in found


def test_tolerance_grows_with_the_reduction_and_the_type() -> None:
    assert reduction_length(sum_nest(8, 500)) == 500
    short, long = sum_nest(8, 16), sum_nest(8, 1600)
    assert tolerance(long, 1, 1.0).absolute == pytest.approx(10 * tolerance(short, 1, 1.0).absolute)
    assert tolerance(threshold_nest(), 2, 1.0) == Tolerance(0.0, 0.0)


def test_a_missed_element_of_a_sum_is_seen() -> None:
    nest = sum_nest(4, 1000)
    values = plain_operands(nest, [OPEN, OPEN], np.random.default_rng(0))
    (expected,), _ = reference(nest, values, strict=False)
    allowed = tolerance(nest, 1, 30.0)
    right = values[0].sum(1, dtype=np.float32)
    assert mismatch(right, expected, allowed) is None
    assert mismatch(values[0][:, 1:].sum(1, dtype=np.float32), expected, allowed) is not None


def test_references_are_float64_and_not_rounded_to_the_output() -> None:
    (expected,), (mask,) = reference(scale_nest(3), [np.full(3, 0.1, np.float32)], strict=False)
    assert expected.dtype == np.float64
    assert mask is None
    np.testing.assert_array_equal(expected, 2.0 * np.float64(np.float32(0.1)))


def test_only_results_of_arithmetic_are_ambiguous() -> None:
    x = np.array([1e-9, 1.0, -1.0, 0.0], np.float32)
    _, (mask,) = reference(threshold_nest(4), [x, np.ones(4, np.float32)], strict=False)
    assert mask is not None
    assert mask.tolist() == [True, False, False, True]
    exact = threshold_nest(4, computed=False)
    _, (mask,) = reference(exact, [x, np.ones(4, np.float32)], strict=False)
    assert mask is None


def test_rounding_steps_are_ambiguous_near_integers() -> None:
    nest = LoopNest(
        (Axis("i0", 3),),
        (buffer((3,)), buffer((3,), DType.I32, "output")),
        (
            Load(0, (Index(((scale_nest().statements[0].index[0].terms[0][0], 1),)),), DType.F32),
            Compute("mul", (0, 0), DType.F32),
            Compute("cast", (1,), DType.I32, attrs(dtype="i32")),
        ),
        (Store(1, scale_nest().stores[0].index, 2),),
    )
    _, masks = with_ambiguity(nest, 1e-5)
    assert masks == (2,)
    x = np.array([2.0, 1.5, math.sqrt(3)], np.float32)
    _, (mask,) = reference(nest, [x], strict=False)
    assert mask is not None
    assert mask.tolist() == [True, False, True]


def chain_nest(elems: int, *ops: str) -> LoopNest:
    """out = ops[-1](… ops[0](x)); the second operand of a binary op is 1."""
    i0, f32 = scale_nest().stores[0].index, DType.F32
    statements: list[Statement] = [Load(0, i0, f32), Compute("const", (), f32, attrs(value=1.0))]
    for op in ops:
        value = len(statements) - 1 if len(statements) > 2 else 0
        args = (1, value) if op == "sub" else (value,)
        statements.append(Compute(op, args, f32))
    last = len(statements) - 1
    buffers = (buffer((elems,)), buffer((elems,), role="output"))
    return LoopNest((Axis("i0", elems),), buffers, tuple(statements), (Store(1, i0, last),))


@pytest.mark.parametrize(
    ("ops", "value", "lost"),
    [
        (("sigmoid", "sub", "log"), 30.0, True),  # log(1 - 1) where float64 has -30
        (("sigmoid", "sub", "log"), 3.0, False),
        (("neg", "exp", "log"), 100.0, True),  # few bits of exp(-100) are left
        (("neg", "exp", "log"), 60.0, False),
        (("exp", "neg"), 95.0, False),  # both overflow
    ],
)
def test_what_fp32_cannot_say_is_exempt(ops: tuple[str, ...], value: float, lost: bool) -> None:
    nest, values = chain_nest(2, *ops), [np.array([0.5, value], np.float32)]
    expected, _ = reference(nest, values, strict=False)
    (mask,) = ill_conditioned(nest, values, expected, [Tolerance(1e-6, 1e-6)])
    assert (mask.tolist() if mask is not None else [False, False]) == [False, lost]


def test_what_hangs_on_the_order_of_sums_is_exempt() -> None:
    """silu(x · w) · 1e8: where the sum is -20, its rounding becomes a wrong digit."""
    b = GraphBuilder()
    x, w, large = (b.input(TensorType(DType.F32, shape)) for shape in ((2, 64), (64, 1), (2, 1)))
    b.output(b.op("mul", b.op("silu", b.op("matmul", x, w)), large))
    graph = b.build()
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert isinstance(lowered, Lowered)
    rows = np.stack([np.tile([1e4, -1e4], 32), np.ones(64)]).astype(np.float32)
    rows[0, 0] -= 20.0
    values = [rows, np.ones((64, 1), np.float32), np.array([[1e8], [1.0]], np.float32)]
    expected, _ = reference(lowered.nest, values, strict=False)
    allowed = [Tolerance(1e-5, 1e-5)]
    (mask,) = ill_conditioned(lowered.nest, values, expected, allowed)
    assert mask is not None
    assert mask.tolist() == [[True], [False]]


def test_what_hangs_on_the_last_bit_of_an_operand_is_exempt() -> None:
    """x / (y - b · b): where the two are close, the difference keeps few of their digits."""
    g = GraphBuilder()
    x, y, b = (g.input(TensorType(DType.F32, (2,))) for _ in range(3))
    g.output(g.op("div", x, g.op("sub", y, g.op("mul", b, b))))
    graph = g.build()
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert isinstance(lowered, Lowered)
    ones, close = np.ones(2, np.float32), np.array([1 - 2e-3, 0.5], np.float32)
    arrays = {x: ones, y: ones, b: close}
    inputs = [arrays[v] for v in lowered.operands if v in arrays]
    expected, _ = reference(lowered.nest, inputs, strict=False)
    (mask,) = ill_conditioned(lowered.nest, inputs, expected, [Tolerance(2e-5, 1e-5)])
    assert mask is not None
    assert mask.tolist() == [True, False]


def test_a_wrong_kernel_is_seen_beside_exempt_elements() -> None:
    nest = chain_nest(1000, "sigmoid", "sub", "log")
    check = NestCheck("k", nest, (OPEN, OPEN), seed=1, strict=False)
    with contextlib.closing(build_check(check)) as block:
        arrays = shared_memory.map_arrays(block.handle, block.message.block, writable=False)
        for chosen in block.message.sets:
            given, expected = arrays[chosen.inputs[0]], arrays[chosen.expected[0]]
            place = chosen.ambiguous[0]
            exempt = arrays[place] if place is not None else None
            (right,) = execute(nest, [given])
            assert mismatch(right, expected, chosen.tolerances[0], exempt) is None
            assert mismatch(right * 1.01, expected, chosen.tolerances[0], exempt) is not None


def gather_nest() -> LoopNest:
    """out[i] = table[index[i]] with a table of 7 rows."""
    i0 = scale_nest().stores[0].index
    return LoopNest(
        (Axis("i0", 50),),
        (buffer((50,), DType.I64), buffer((7,)), buffer((50,), role="output")),
        (
            Load(0, i0, DType.I64),
            Load(1, (Index(((ValueTerm(0), 1),)),), DType.F32),
        ),
        (Store(2, i0, 1),),
    )


def test_indices_stay_inside_what_they_address() -> None:
    nest = gather_nest()
    assert index_bounds(nest) == {0: 7}
    for make in (plain_operands, mixed_operands):
        index = make(nest, [OPEN] * 3, np.random.default_rng(1))[0]
        assert index.min() >= 0
        assert index.max() <= 6


def test_edges_cover_specials_only_where_they_may_occur() -> None:
    nest = scale_nest(1000)
    rng = np.random.default_rng(2)
    (free,) = mixed_operands(nest, [OPEN, OPEN], rng)
    assert not np.isfinite(free).all()
    (finite,) = mixed_operands(nest, [ValueDomain(finite=True), OPEN], rng)
    assert np.isfinite(finite).all()
    (positive,) = mixed_operands(nest, [ValueDomain(low=0.0), OPEN], rng)
    assert positive.min() >= 0


def test_constants_hold_no_nan() -> None:
    nest = scale_nest(1000)
    constant = LoopNest(
        nest.axes, (buffer((1000,), role="constant"), nest.buffers[1]), nest.statements, nest.stores
    )
    assert constant.buffers[0].role is BufferRole.CONSTANT
    (values,) = mixed_operands(constant, [OPEN, OPEN], np.random.default_rng(3))
    assert np.isfinite(values).all()


def test_outputs_are_poisoned_and_fenced() -> None:
    out = OutputBuffer(buffer((10,), DType.BF16, "output").type)
    assert out.array.dtype == ml_dtypes.bfloat16
    assert out.array.ctypes.data % 64 == 0
    out.poison()
    assert np.isnan(out.array.astype(np.float32)).all()
    assert out.overrun() is None
    ctypes.memset(out.array.ctypes.data + 20, 0, 1)
    assert out.overrun() == "bytes after the output were overwritten"
