"""Candidates: what is proposed, what is refused, and that equal layers are one task."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from fusion_cases import parameter, single, tensor

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.errors import Refusal
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.candidates import Constraints, Limits, candidates
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.loopnest import BufferRole, Contract
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.ir.types import TensorType

TARGET = Target(DeviceKind.CPU, "x86-f1m1", "x86-64-v4", cores=2, vector_bytes=64)


class TakesAll:
    name = "all"

    def refuse(self, nest, target):
        return None


class TakesNoProduct:
    name = "no-product"

    def refuse(self, nest, target):
        if any(isinstance(s, Contract) for s in nest.statements):
            return Refusal("has-product", "no matrix products here")
        return None


def found(graph, *templates, **options):
    return candidates(graph, templates or (TakesAll(),), TARGET, **options)


def node_sets(result):
    return {candidate.group.nodes for candidate in result.groups}


def chain(*ops: str):
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    for op in ops:
        x = b.op(op, x)
    b.output(x)
    return b.build()


def layers(count: int):
    b = GraphBuilder()
    x = b.input(tensor(8, 16))
    for _ in range(count):
        y = b.op("linear", x, parameter(b, 32, 16), parameter(b, 32))
        y = b.op("linear", b.op("gelu", y, approximate="none"), parameter(b, 16, 32))
        y = b.op("add", x, y)
        x = b.op("layer_norm", y, parameter(b, 16), axes=1, eps=1e-5, weight=True, bias=False)
    b.output(x)
    return b.build()


def test_a_chain_gives_every_run_of_it():
    assert node_sets(found(chain("exp", "tanh", "neg"))) == {
        (0,),
        (1,),
        (2,),
        (0, 1),
        (1, 2),
        (0, 1, 2),
    }


def test_groups_are_convex_and_agree_with_lower():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    left, right = b.op("exp", x), b.op("tanh", x)
    b.output(b.op("add", left, b.op("softmax", b.op("mul", left, right), dim=1)))
    graph = b.build()
    result = found(graph)
    assert tuple(range(5)) in node_sets(result)
    for candidate in result.groups:
        lowered = lower(graph, candidate.group)
        assert not isinstance(lowered, Refusal)
        assert lowered == candidate.lowered
        nodes = set(candidate.group.nodes)
        assert not ({0, 4} <= nodes and not {2, 3} <= nodes)


def test_equal_layers_are_equal_tasks():
    one, four = found(layers(1)), found(layers(4))
    assert len(four.groups) > 3 * len(one.groups)
    assert len(four.tasks()) <= len(one.tasks()) + 8


def test_products_of_one_input_share_a_kernel():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    gate, up = (b.op("linear", x, parameter(b, 8, 6)) for _ in range(2))
    other = b.op("linear", x, parameter(b, 5, 6))
    b.output(b.op("mul", b.op("silu", gate), up))
    b.output(other)
    result = found(b.build())
    assert (0, 1, 3, 4) in node_sets(result)
    assert not any(2 in nodes and nodes != (2,) for nodes in node_sets(result))
    gated = next(c for c in result.groups if c.group.nodes == (0, 1, 3, 4))
    left = {s.lhs for s in gated.lowered.nest.statements if isinstance(s, Contract)}
    assert len(left) == 1


def test_chained_products_never_share_a_kernel():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    b.output(b.op("linear", b.op("linear", x, parameter(b, 8, 6)), parameter(b, 6, 8)))
    result = found(b.build())
    assert node_sets(result) == {(0,), (1,)}
    assert [(r.nodes, r.refusal.code) for r in result.refusals] == [((0, 1), "two-products")]


def test_a_template_that_refuses_leaves_the_node_to_the_library_with_its_code():
    result = found(layers(1), TakesNoProduct())
    assert all(0 not in nodes for nodes in node_sets(result))
    (linear,) = [group for group in result.library if group.nodes == (0,)]
    assert linear.code == "has-product"


def test_constants_are_computed_at_bind_time_and_views_of_them_are_reads():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    w = parameter(b, 5, 6)
    doubled = b.op("add", w, w)
    b.output(b.op("matmul", x, b.op("permute", doubled, dims=(1, 0))))
    result = found(b.build())
    assert result.constant == (0, 1)
    (product,) = [c for c in result.groups if 2 in c.group.nodes]
    assert product.group.nodes == (1, 2)
    assert product.lowered.nest.buffers[1].role is BufferRole.CONSTANT


def test_a_cheap_value_read_elsewhere_may_be_made_again():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    y = b.op("exp", x)
    b.output(b.op("softmax", y, dim=1))
    b.output(b.op("sum", y, dims=(0,), keepdim=False))
    outputs = {c.group.outputs for c in found(b.build()).groups if c.group.nodes == (0, 1)}
    assert outputs == {(1, 2), (2,)}


def test_a_norm_that_is_returned_may_be_computed_again_before_a_product():
    """No template returns what stands before its product: the norm is a kernel of its own, too."""
    b = GraphBuilder()
    x = b.input(tensor(8, 16))
    y = b.op("layer_norm", x, parameter(b, 16), axes=1, eps=1e-5, weight=True, bias=False)
    b.output(y)
    b.output(b.op("linear", y, parameter(b, 32, 16)))
    groups = [c.group for c in found(b.build(), *templates(TARGET)).groups]
    assert [(g.nodes, len(g.outputs)) for g in groups] == [((0,), 1), ((0, 1), 1), ((1,), 1)]


def test_rules_keep_nodes_apart_or_together_or_in_the_framework():
    graph = chain("exp", "tanh", "neg")
    apart = found(graph, constraints=Constraints(apart=frozenset({frozenset((0, 1))})))
    assert node_sets(apart) == {(0,), (1,), (2,), (1, 2)}
    together = found(graph, constraints=Constraints(together=frozenset({frozenset((0, 1))})))
    assert node_sets(together) == {(2,), (0, 1), (0, 1, 2)}
    framework = found(graph, constraints=Constraints(framework=frozenset({1})))
    assert node_sets(framework) == {(0,), (2,)}
    assert {g.code for g in framework.library if g.nodes == (1,)} == {"rule-framework"}


def test_limits_bound_the_enumeration():
    result = found(chain(*["exp", "neg"] * 10), limits=Limits(nodes=5, groups=40, lowered=30))
    assert len(result.groups) <= 42
    assert max(len(nodes) for nodes in node_sets(result)) <= 5
    assert {(i,) for i in range(20)} <= node_sets(result)


def test_framework_nodes_keep_their_own_code():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    (y,) = b.op(
        "framework",
        x,
        out_types=(tensor(4, 6),),
        target="aten.sort.default",
        args=(),
        code="data-dependent",
        sentence="sort has no template",
    )
    b.output(b.op("exp", y))
    result = found(b.build())
    assert node_sets(result) == {(1,)}
    assert result.library[0].code == "data-dependent"


PLAIN = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}


def test_convolution_is_a_kernel_and_a_choice_of_the_library():
    graph = single(
        "convolution",
        tensor(1, 3, 8, 8),
        tensor(4, 3, 3, 3),
        stride=(1, 1),
        padding=(1, 1),
        dilation=(1, 1),
        groups=1,
    )
    result = found(graph)
    assert result.library[0].code == "library"
    assert node_sets(result) == {(0,)}


@pytest.mark.parametrize(("kernel", "fused"), [(1, True), (3, False)])
def test_only_pointwise_convolutions_compute_their_input(kernel, fused):
    b = GraphBuilder()
    x, w = b.input(tensor(1, 8, 9, 9)), parameter(b, 8, 8, kernel, kernel)
    b.output(b.op("relu", b.op("convolution", b.op("relu", x), w, **PLAIN)))
    result = found(b.build())
    assert ((0, 1) in node_sets(result)) is fused
    assert (1, 2) in node_sets(result)
    codes = {r.refusal.code for r in result.refusals if r.nodes == (0, 1)}
    assert codes == (set() if fused else {"overlapping-windows"})


def test_a_pointwise_convolution_computes_a_depthwise_one_before_it():
    b = GraphBuilder()
    x, depthwise = b.input(tensor(1, 8, 9, 9)), parameter(b, 8, 1, 3, 3)
    y = b.op("convolution", x, depthwise, **{**PLAIN, "groups": 8})
    b.output(b.op("convolution", b.op("relu", y), parameter(b, 16, 8, 1, 1), **PLAIN))
    assert {(0, 1), (0, 1, 2)} <= node_sets(found(b.build()))


@pytest.mark.parametrize("numerics", ["fast", "strict"])
def test_merged_projections_enumerate(numerics):
    b = GraphBuilder()
    x = b.input(tensor(8, 16))
    for _ in range(3):
        y = b.op("linear", x, parameter(b, 16, 16))
        b.output(b.op("permute", b.op("reshape", y, shape=(8, 4, 4)), dims=(1, 0, 2)))
    ruled = apply_rules(b.build(), load_rules())
    result = found(ruled.program, constraints=ruled.constraints, numerics=numerics)
    assert len(result.constant) == 1
    assert any(len(c.group.nodes) == 3 for c in result.groups)


def test_long_programs_have_fused_groups_everywhere() -> None:
    """More nodes than the limit of groups: single nodes alone would use it up."""
    limits = Limits(groups=20, lowered=30)
    result = found(chain(*["exp", "neg", "relu"] * 20), limits=limits)
    fused = [set(c.group.nodes) for c in result.groups if len(c.group.nodes) > 1]
    assert set().union(*fused) == set(range(60))
    assert len(result.groups) <= 2 + 3 * 60


def _steps(layers: int) -> int:
    """Steps over bits while the groups of so many layers are found that all add one number."""
    b = GraphBuilder()
    value = b.input(tensor(4, 6))
    number = b.op("full", shape=(), dtype="f32", value=0.5)
    for _ in range(layers):
        value = b.op("tanh", b.op("add", b.op("exp", value), number))
    b.output(value)
    counted = 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        counted += frame.f_code.co_name in ("bits", "closure", "_completed")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        found(b.build(), limits=Limits(nodes=6, groups=10))
    finally:
        sys.setprofile(before)
    return counted


def test_four_times_the_layers_take_about_four_times_the_steps() -> None:
    _steps(5)
    assert _steps(120) < 6 * _steps(30)


def test_a_number_that_all_layers_add_bounds_no_group() -> None:
    b = GraphBuilder()
    value = b.input(tensor(4, 6))
    number = b.op("full", shape=(), dtype="f32", value=0.5)
    for _ in range(8):
        value = b.op("tanh", b.op("add", b.op("exp", value), number))
    b.output(value)
    sets = node_sets(found(b.build()))
    in_the_middle = {nodes for nodes in sets if len(nodes) == 10 and min(set(nodes) - {0}) > 6}
    assert in_the_middle, "nine ops and the number they add"


def test_numbers_that_ops_read_take_no_room_of_a_group() -> None:
    b = GraphBuilder()
    value = b.input(tensor(4, 6))
    for number in range(20):
        value = b.op("mul", value, b.op("full", shape=(), dtype="f32", value=1.5 + number))
    b.output(value)
    assert max(map(len, node_sets(found(b.build())))) == 40


def test_quantised_weights_are_read_as_they_are_stored() -> None:
    b = GraphBuilder()
    x = b.input(tensor(4, 16))
    weight = b.input(TensorType(DType.I8, (6, 16)), kind=InputKind.PARAMETER)
    b.output(b.op("relu", b.op("linear", x, b.op("cast", weight, dtype="f32"))))
    result = found(b.build())
    assert {(0, 1), (0, 1, 2)} <= node_sets(result)
    for candidate in result.groups:
        if 1 in candidate.group.nodes:
            assert weight in candidate.group.inputs
