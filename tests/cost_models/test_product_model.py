"""The model of products sees what their schedules decide."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from pathlib import Path

import pytest

from cost_models.analytic import AnalyticModel
from cost_models.machine import Machine
from cost_models.metrics import rank_correlation
from cost_models.product.packing import right_cycles
from cost_models.product.subject import Subject, walk_of
from cost_models.product.tile import step_cycles
from kernel_gen.codegen.cpu.matmul.analysed import analysed
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.tiling import from_schedule
from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Choice, Decision, Schedule
from tests.cost_models.product_nests import (
    TARGET,
    convolution,
    linear,
    product,
    schedule,
    scores,
)

RECORD = json.loads((Path(__file__).parent / "product_times.json").read_text(encoding="utf-8"))
MEASURED = {
    "square": linear(512, 768, 768),
    "skinny": linear(16, 2048, 2048),
    "gemv": linear(1, 2048, 4096),
    "batched": scores(2, 12, 128, 64),
    "deep": product(32, 16384, 32),
    "bf16": linear(256, 1024, 1024, DType.BF16),
    "conv1x1_nhwc": convolution(4, 256, 28, 128, 1, 1, last=True),
    "conv3x3_nchw": convolution(4, 64, 28, 64, 3, 1, last=False),
    "conv3x3_nhwc": convolution(4, 64, 28, 64, 3, 1, last=True),
    "conv3x3_s2": convolution(4, 64, 28, 128, 3, 2, last=False),
}


def predict(nest: LoopNest, target: Target = TARGET, **choices: Choice) -> float:
    return AnalyticModel().predict_us(nest, schedule(nest, target, **choices), target)


def subject(nest: LoopNest, **choices: Choice) -> Subject:
    problem = analysed(nest)
    assert isinstance(problem, Problem)
    tiling = from_schedule(schedule(nest, **choices), lanes=16)
    return Subject(problem, tiling, TARGET, Machine())


def test_a_step_waits_for_latency_with_few_sums_and_for_memory_with_too_many():
    each = {
        shape: step_cycles(TARGET, *shape) / (shape[0] * shape[1])
        for shape in ((1, 1), (2, 2), (8, 3), (12, 4))
    }
    assert each[8, 3] < each[2, 2] < each[1, 1]
    assert each[12, 4] > 1.5 * each[8, 3]


def test_rows_that_only_fill_a_tile_up_are_paid_for():
    whole, one_more = (predict(linear(m, 512, 512), tile="8x3", mc=8) for m in (64, 65))
    assert one_more > 1.1 * whole


def test_a_tail_of_one_row_on_the_second_thread_does_not_double_the_speed():
    def speedup(rows: int) -> float:
        nest, point = linear(rows, 1024, 1024), {"tile": "8x3", "split": "rows", "mc": 1}
        return predict(nest, threads="one", **point) / predict(nest, threads="all", **point)

    assert speedup(16) > 1.7
    assert speedup(17) < 1.5  # two tiles of rows and one
    assert speedup(8) < 1.0


def test_a_thread_without_work_does_not_help():
    nest = linear(256, 1024, 1024)
    alone = predict(nest, threads="one", split="batch")  # of one product
    assert predict(nest, split="batch") >= alone
    assert predict(nest, split="cols") < 0.6 * alone


def test_packing_constants_costs_nothing_per_call():
    constant, given = linear(64, 512, 512), product(64, 512, 512)
    assert right_cycles(subject(constant, right="load")) == 0
    assert right_cycles(subject(given, right="direct", left="direct")) == 0
    assert right_cycles(subject(given, right="call")) > 0


def test_windows_cost_more_to_pack_than_rows():
    def each(nest: LoopNest, cols: str) -> float:
        found = subject(nest, right="call", cols=cols)
        return right_cycles(found) / (found.problem.n * found.problem.k)

    plain = each(convolution(4, 64, 28, 64, 1, 1, last=False), "joined")
    windows = each(convolution(4, 64, 28, 64, 3, 1, last=False), "joined")
    every_second = each(convolution(4, 64, 28, 64, 3, 2, last=False), "joined")
    assert plain < windows < every_second


def test_blocks_that_leave_the_caches_cost():
    nest, block = linear(512, 4096, 4096), {"tile": "8x3", "left": "call"}
    in_l2 = predict(nest, kc=512, mc=16, nc=4, **block)
    assert predict(nest, kc=512, mc=1, nc=128, **block) > 1.5 * in_l2  # all of B for each row tile
    assert predict(nest, kc=8, mc=16, nc=4, **block) > 1.2 * in_l2  # sums go to and fro


def test_parts_of_sums_pay_where_nothing_else_is_shared_out_and_cost_memory():
    nest = product(8, 65536, 8)
    halves, many = (predict(nest, split="depth", parts=n) for n in (2, 16))
    by_cols = predict(nest, split="cols")  # one tile of columns
    assert halves < 0.6 * by_cols
    assert by_cols == pytest.approx(predict(nest, threads="one", split="cols"), rel=0.05)
    wide = product(256, 4096, 256)
    assert predict(wide, split="depth", parts=2) < predict(wide, split="depth", parts=16)
    assert halves < many * 1.01


def test_pairs_of_bf16_take_half_of_the_steps_only_where_instructions_multiply_them():
    nest = linear(256, 1024, 1024, DType.BF16)
    plain = dataclasses.replace(TARGET, features=())
    assert predict(nest, element="pairs") < 0.6 * predict(nest, element="wide")
    assert predict(nest, plain, element="pairs") > predict(nest, plain, element="wide")


def test_a_weight_read_in_place_moves_as_it_is_stored():
    wide, narrow = (
        subject(linear(1, 2048, 4096, dtype), right="dot") for dtype in (DType.F32, DType.BF16)
    )
    assert (wide.right_bytes, narrow.right_bytes) == (4, 2)


def test_the_walk_covers_all_tiles():
    nest = linear(100, 300, 200)
    for split in ("rows", "cols", "batch"):
        found = subject(nest, tile="8x3", split=split, mc=2, nc=2)
        walk = walk_of(found)
        tiles = found.tiling.row_tiles(found.problem) * found.tiling.col_tiles(found.problem)
        assert tiles / 2 <= walk.tiles <= tiles
        assert walk.pieces * walk.steps >= walk.depth


@pytest.mark.parametrize("split", ["batch", "rows", "cols"])
def test_empty_sums_have_a_price(split):
    assert 0 < predict(product(8, 0, 8), split=split) < math.inf


def test_a_schedule_for_a_nest_without_a_product_is_a_callers_mistake():
    nest = linear(8, 8, 8)
    stray = LoopNest(nest.axes, nest.buffers, nest.statements[:1], ())
    with pytest.raises((InvalidGraph, StopIteration)):
        AnalyticModel().predict_us(stray, schedule(nest), TARGET)


@pytest.mark.parametrize("threads", ["one_us", "two_us"])
def test_points_are_ranked_as_they_were_measured(threads):
    """Zen 4, least of 8 samples on an idle machine; random points, which a flat model cannot tell
    from each other."""
    target = dataclasses.replace(
        TARGET,
        cores=1 if threads == "one_us" else 2,
        **{k: v for k, v in RECORD["target"].items() if k != "features"},
    )
    model = AnalyticModel(Machine(**RECORD["machine"]))
    found = {name: _ranked(model, name, target, threads) for name in MEASURED}
    agreement = {name: tau for name, (tau, _) in found.items()}
    assert statistics.mean(agreement.values()) > 0.65, agreement
    assert min(agreement.values()) > 0.3, agreement
    regret = {name: of_three for name, (_, of_three) in found.items()}
    assert statistics.geometric_mean(regret.values()) < 1.05, regret


def _ranked(model: AnalyticModel, name: str, target: Target, threads: str) -> tuple[float, float]:
    """Kendall's τ, and the best of the three best predicted over the best."""
    nest, rows = MEASURED[name], RECORD["nests"][name]
    common = {"unroll": 2, "prefetch": 8, "ahead": "none", "threads": "all", "walk": "straight"}
    predicted = [
        model.predict_us(nest, schedule(nest, target, **{**common, **row["point"]}), target)
        for row in rows
    ]
    measured = [row[threads] for row in rows]
    order = sorted(range(len(rows)), key=lambda i: predicted[i])
    best = min(measured[i] for i in order[:3])
    return rank_correlation(predicted, measured), best / min(measured)


def test_a_schedule_without_a_decision_is_refused():
    bare = Schedule("matmul", (Decision("tile", attrs(rows=4, vectors=1)),))
    with pytest.raises(InvalidGraph):
        AnalyticModel().predict_us(linear(8, 8, 8), bare, TARGET)
