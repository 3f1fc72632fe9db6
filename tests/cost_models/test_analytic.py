"""The analytic model orders kernels as physics does."""

from __future__ import annotations

import math

import pytest

from cost_models.analytic import AnalyticModel
from cost_models.walks import walks
from kernel_gen.codegen.cpu.pointwise import Pointwise
from kernel_gen.errors import Refusal
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind, attrs
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.ir.types import Sym, TensorType
from kernel_gen.schedule.schedule import Decision, Schedule

TARGET = Target(DeviceKind.CPU, "x86-f26m1", "x86-64-v4", cores=2, vector_bytes=64)


def nest_of(build, *shapes, dtype=DType.F32):
    b = GraphBuilder()
    b.output(build(b, *(b.input(TensorType(dtype, shape)) for shape in shapes)))
    graph = b.build()
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal)
    return lowered.nest


def predict(nest, schedule=None, target=TARGET):
    return AnalyticModel().predict_us(nest, schedule, target)


def relu(b, x):
    return b.op("relu", x)


def test_memory_bound_time_follows_bytes():
    small, large = nest_of(relu, (4096, 4096)), nest_of(relu, (8192, 4096))
    assert predict(large) == pytest.approx(2 * predict(small), rel=0.05)
    half = nest_of(relu, (4096, 4096), dtype=DType.BF16)
    assert predict(half) < 0.7 * predict(small)


def test_fusing_two_passes_is_cheaper_than_running_both():
    fused = nest_of(lambda b, x: b.op("tanh", b.op("relu", x)), (2048, 2048))
    alone = predict(nest_of(relu, (2048, 2048)))
    alone += predict(nest_of(lambda b, x: b.op("tanh", x), (2048, 2048)))
    assert predict(fused) < alone


def test_a_product_is_bound_by_multiply_adds():
    nest = nest_of(lambda b, x, w: b.op("matmul", x, w), (1024, 4096), (4096, 4096))
    flops = 2 * 1024 * 4096 * 4096
    assert flops / 490e3 < predict(nest) < flops / 300e3


def test_strided_reads_cost_more_than_contiguous_ones():
    def transposed(b, x):
        return b.op("relu", b.op("permute", x, dims=(1, 0)))

    assert predict(nest_of(transposed, (256, 256))) > predict(nest_of(relu, (256, 256)))


def test_one_thread_is_slower_than_two_on_large_nests_only():
    one = Schedule("any", (Decision("threads", attrs(count=1)),))
    large, tiny = nest_of(relu, (4096, 1024)), nest_of(relu, (8, 8))
    assert predict(large, one) >= predict(large)
    assert predict(tiny, one) < predict(tiny)


def test_symbolic_and_scalar_nests_have_a_finite_price():
    b = GraphBuilder()
    b.symbol("s0", 1, 64, 4)
    x = b.input(TensorType(DType.F32, (Sym("s0"), 6)))
    b.output(b.op("sum", x, dims=(0, 1), keepdim=False))
    graph = b.build()
    lowered = lower(graph, make_group(graph, (0,)))
    assert not isinstance(lowered, Refusal)
    for nest in (lowered.nest, nest_of(relu, ())):
        assert 0 < predict(nest) < math.inf


def test_a_variance_in_one_pass_reads_long_rows_once():
    once, twice = (
        Schedule("row", (Decision("passes", attrs(parameter="passes", value=n)),)) for n in (1, 2)
    )

    def variance(b, x):
        return b.op("var", x, dims=(1,), keepdim=False, correction=1)

    long, short = nest_of(variance, (4, 1 << 24)), nest_of(variance, (1 << 14, 1 << 10))
    assert predict(long, once) < 0.7 * predict(long, twice)
    assert predict(short, once) > predict(short, twice)


def test_constants_of_products_are_packed_before_any_call():
    x, w = TensorType(DType.F32, (1, 512)), TensorType(DType.F32, (512, 512))

    def product(kind):
        b = GraphBuilder()
        b.output(b.op("linear", b.input(x), b.input(w, kind)))
        graph = b.build()
        lowered = lower(graph, make_group(graph, (0,)))
        assert not isinstance(lowered, Refusal)
        return predict(lowered.nest)

    assert product(InputKind.PARAMETER) < 0.5 * product(InputKind.USER)


def chosen(**values):
    """A schedule of one choice per decision."""
    return Schedule(
        "any",
        tuple(
            Decision(kind.replace("_", "-"), attrs(parameter=kind, value=value))
            for kind, value in values.items()
        ),
    )


def test_stores_past_the_caches_pay_beyond_them():
    beyond, within = nest_of(relu, (8192, 4096)), nest_of(relu, (256, 256))
    assert predict(beyond, chosen(stream_store=1)) < 0.8 * predict(beyond, chosen(stream_store=0))
    assert predict(within, chosen(stream_store=1)) >= predict(within, chosen(stream_store=0))
    assert predict(beyond, chosen(stream_store=2)) == predict(beyond, chosen(stream_store=1))


def test_few_sums_side_by_side_wait_for_each_other():
    nest = nest_of(lambda b, x: b.op("sum", x, dims=(0,), keepdim=False), (1024, 256))
    one, two, many = (predict(nest, chosen(rows=n, unroll=1)) for n in (1, 2, 16))
    assert one > 1.1 * two > 1.1 * many
    assert many == predict(nest)


def test_sums_of_rows_are_read_along_rows_whatever_shape_they_have():
    def cosines(keepdim):
        def build(b, x, y):
            length = b.op("sqrt", b.op("sum", b.op("square", x), dims=(1,), keepdim=True))
            return b.op("sum", b.op("mul", b.op("div", x, length), y), dims=(1,), keepdim=keepdim)

        return nest_of(build, (8192, 384), (8192, 384))

    assert predict(cosines(keepdim=False)) == predict(cosines(keepdim=True))


@pytest.mark.parametrize("other", ["i0", "rows", "scalar"])
def test_vectors_across_rows_and_no_vectors_cost_more_than_along_rows(other):
    nest = nest_of(lambda b, x: b.op("sum", x, dims=(1,), keepdim=False), (4096, 512))
    (along,) = (axis.name for axis in nest.axes if axis.name != "i0")
    assert predict(nest, chosen(vectorise=other)) > 2 * predict(nest, chosen(vectorise=along))


def test_columns_are_summed_along_the_axis_that_stays():
    nest = nest_of(lambda b, x: b.op("sum", x, dims=(0,), keepdim=False), (4096, 512))
    assert predict(nest, chosen(vectorise="rows")) == predict(nest, chosen(vectorise="contiguous"))


def test_a_mean_over_rows_reads_the_rows_once_more_at_no_price():
    def losses(whole):
        def build(b, x):
            top = b.op("amax", x, dims=(1,), keepdim=True)
            total = b.op("sum", b.op("exp", b.op("sub", x, top)), dims=(1,), keepdim=False)
            return b.op("mean", b.op("log", total), dims=(0,), keepdim=False) if whole else total

        return nest_of(build, (4096, 4096))

    assert predict(losses(whole=True)) < 1.1 * predict(losses(whole=False))


def test_sums_of_columns_beside_rows_are_read_again_unless_they_cross():
    def build(b, x, y):
        total = b.op("sum", b.op("mul", x, y), dims=(1,), keepdim=True)
        return b.op("sum", b.op("mul", x, total), dims=(0,), keepdim=False)

    nest = nest_of(build, (16384, 4096), (16384, 4096))
    apart, together = (predict(nest, chosen(cross=n)) for n in (0, 1))
    assert 1.4 * together < apart < 1.6 * together


def test_walks_are_those_of_the_reduced_axes():
    nest = nest_of(lambda b, x: b.op("softmax", x, dim=1), (64, 32))
    (walk,) = walks(nest, crosses=False)
    assert (walk.stages, len(walk.axes)) == (2, 1)
    assert walk.reads
    assert walk.read_for_stores

    (plain,) = walks(nest_of(relu, (64, 32)), crosses=False)
    assert (plain.axes, plain.stages) == (frozenset(), 1)


def pointwise_at(nest, **point):
    defaults = {"across": "", "ahead": 0, "block": 4096, "unroll": 1, "rows": 1, "stream": 0}
    schedule = Pointwise().schedule(nest, TARGET, {**defaults, "threads": "all", **point})
    assert not isinstance(schedule, Refusal)
    return predict(nest, schedule)


def test_two_threads_draw_more_than_one_from_the_last_cache_and_from_memory():
    for shape in ((1024, 1024), (8192, 4096)):
        nest = nest_of(relu, shape)
        one, both = (pointwise_at(nest, axis="i0", threads=n) for n in ("one", "all"))
        assert one > 1.4 * both


def test_vectors_against_the_grain_lose_lines_and_tiles_do_not():
    def transposed(b, x, y):
        return b.op("add", b.op("permute", x, dims=(1, 0)), y)

    nest = nest_of(transposed, (2048, 2048), (2048, 2048))
    tiles = pointwise_at(nest, axis="i1", across="i0", block=128)
    assert tiles < 0.5 * pointwise_at(nest, axis="i1")
    assert tiles < 0.2 * pointwise_at(nest, axis="i0")
    few_rows = nest_of(transposed, (2048, 16), (16, 2048))
    assert pointwise_at(few_rows, axis="i1", block=64) < 3 * pointwise_at(
        few_rows, axis="i1", across="i0", block=64
    )


def test_threads_that_share_each_row_meet_for_each():
    many = nest_of(lambda b, x: b.op("softmax", x, dim=1), (4096, 256))
    few = nest_of(lambda b, x: b.op("softmax", x, dim=1), (2, 1 << 19))
    assert predict(many, chosen(threads="split")) > 3 * predict(many, chosen(threads="all"))
    assert predict(few, chosen(threads="split")) < 1.1 * predict(few, chosen(threads="all"))


def test_a_variance_in_one_pass_costs_more_where_rows_stay_in_the_cache():
    nest = nest_of(lambda b, x: b.op("var", x, dims=(1,), keepdim=False, correction=1), (256, 512))
    assert predict(nest, chosen(passes=1)) > 1.2 * predict(nest, chosen(passes=2))
