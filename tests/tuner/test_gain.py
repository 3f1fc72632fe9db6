"""What counts as faster than the framework, of plans that run in it."""

from __future__ import annotations

from random import Random

import pytest

from kernel_gen.fusion.group import CONSTANT_CODE, FrameworkGroup, FusionGroup, FusionPlan
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.types import TensorType
from kernel_gen.records import Measurement, Protocol
from tests.tuner.tuner_jobs import add_relu_graph
from tuner.gain import is_baseline, is_improved, times_us


def measured(*samples_us: float) -> Measurement:
    return Measurement(samples_us, Protocol(1, 1, 1, "warm"))


def in_framework(graph: Graph, *groups: tuple[int, ...], code: str = "faster") -> FusionPlan:
    return FusionPlan(tuple(FrameworkGroup(nodes, (), (), code, ".") for nodes in groups))


def convolution_graph() -> Graph:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (1, 8, 9, 9)))
    w = b.input(TensorType(DType.F32, (8, 8, 3, 3)), InputKind.PARAMETER)
    options = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    b.output(b.op("relu", b.op("convolution", x, w, **options)))
    return b.build()


def test_op_by_op_in_the_framework_is_the_baseline() -> None:
    graph = add_relu_graph()
    assert is_baseline(in_framework(graph, (0,), (1,), (2,)), graph, graph)
    kernel = FusionPlan((FusionGroup((0, 1, 2), (0, 1), (4,)),))
    assert not is_baseline(kernel, graph, graph)


def test_what_is_packed_folded_or_rewritten_is_not() -> None:
    graph = convolution_graph()
    assert not is_baseline(in_framework(graph, (0, 1)), graph, graph)  # one call, weight packed
    assert is_baseline(in_framework(graph, (0,), (1,)), graph, graph)
    plain = add_relu_graph()
    assert not is_baseline(in_framework(plain, (0,), code=CONSTANT_CODE), plain, plain)
    assert not is_baseline(in_framework(plain, (0,), (1,), (2,)), plain, add_relu_graph(8))


def test_a_plan_in_the_framework_improves_by_more_than_the_noise() -> None:
    graph = convolution_graph()
    cover = in_framework(graph, (0, 1))
    steady = [20.0 + 0.01 * n for n in range(20)]
    noisy = [10.0 + n for n in range(20)]
    assert is_improved(cover, measured(*(0.8 * us for us in steady)), measured(*steady))
    assert not is_improved(cover, measured(*(0.8 * us for us in noisy)), measured(*noisy))
    assert not is_improved(cover, measured(10.0), measured(20.0))  # one sample says nothing
    kernel = FusionPlan((FusionGroup((0, 1), (0, 1), (3,)),))
    assert is_improved(kernel, measured(*(0.8 * us for us in noisy)), measured(*noisy))


def disturbed(us: float, share: float, most: float, seed: int) -> Measurement:
    """A share of the samples takes up to `most` times as long, as other programs have the cores."""
    random = Random(seed)
    return measured(
        *(us * (random.uniform(1, most) if random.random() < share else 1.0) for _ in range(40))
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_busy_machine_makes_no_gains_and_hides_none(seed: int) -> None:
    """The framework waits at each op, so it loses more."""
    kernel = FusionPlan((FusionGroup((0, 1), (0, 1), (3,)),))
    for ours, theirs in ((20.0, 60.0), (20.0, 20.0), (30.0, 20.0)):
        plan = disturbed(ours, 0.4, 40.0, seed)
        baseline = disturbed(theirs, 0.9, 20.0, seed + 100)
        plan_us, baseline_us = times_us(plan, baseline)
        assert baseline.median_us > 2 * theirs  # what the medians would tell
        assert (plan_us, baseline_us) == pytest.approx((ours, theirs), rel=0.2)
        if ours > theirs:
            assert not is_improved(kernel, plan, baseline)
        elif ours < theirs:
            assert is_improved(kernel, plan, baseline)


def test_a_quiet_run_tells_medians_and_three_rounds_tell_whether_they_agree() -> None:
    steady = [20.0 + 0.01 * n for n in range(20)]
    assert times_us(measured(*steady), measured(*steady)) == (20.095, 20.095)
    assert times_us(measured(10.0, 10.5, 11.0), measured(20.0, 21.0, 22.0)) == (10.5, 21.0)
    assert times_us(measured(10.0, 10.5, 11.0), measured(20.0, 400.0, 500.0)) == (10.0, 20.0)
    assert times_us(measured(10.0), measured(400.0)) == (10.0, 400.0)
