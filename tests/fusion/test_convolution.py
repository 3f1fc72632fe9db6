"""Convolutions as nests, batch norms folded into their weights, and the layout between them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fusion_cases import parameter, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gen.errors import Refusal
from kernel_gen.executor.execute import execute
from kernel_gen.frontend import capture
from kernel_gen.frontend.torch_run import constant_tensor, run
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.fold_norms import holds_norm
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import constant_nodes, make_group
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.loopnest import Contract, Load, Reduce
from kernel_gen.ir.serialize import graph_from_json

TORCH = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


@st.composite
def convolutions(draw):
    """Shapes and settings of one convolution, with an activation before it or not."""
    rank, groups = draw(st.integers(1, 3)), draw(st.sampled_from((1, 1, 2, 3)))
    count = st.integers(1, 3)
    per_group, outputs = draw(count), draw(count) * groups
    kernel = tuple(draw(count) for _ in range(rank))
    settings_ = {
        "stride": tuple(draw(count) for _ in range(rank)),
        "padding": tuple(draw(st.integers(0, 2)) for _ in range(rank)),
        "dilation": tuple(draw(count) for _ in range(rank)),
        "groups": groups,
    }
    space = tuple(
        d * (k - 1) + draw(st.integers(1, 4))
        for k, d in zip(kernel, settings_["dilation"], strict=True)
    )
    x = (draw(st.integers(1, 2)), per_group * groups, *space)
    return x, (outputs, per_group, *kernel), settings_, draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_the_nest_of_a_convolution_is_torchs(case):
    x_shape, w_shape, options, activated = case
    b = GraphBuilder()
    x, w, bias = (b.input(tensor(*s)) for s in (x_shape, w_shape, w_shape[:1]))
    b.output(b.op("convolution", b.op("exp", x) if activated else x, w, bias, **options))
    graph = b.build()
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal), lowered.sentence
    rng = np.random.default_rng(1)
    values = {v: rng.standard_normal(graph.type_of(v).shape, np.float32) for v in (x, w, bias)}
    found = execute(lowered.nest, [values[v] for v in lowered.operands if v in values],
                    precision="f64")[0]  # fmt: skip
    given_ = [torch.from_numpy(values[v]).double() for v in (x, w, bias)]
    given_[0] = given_[0].exp() if activated else given_[0]
    want = TORCH[len(x_shape) - 2](*given_, **options)
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-5, atol=1e-5)


def nest_of(x_shape, w_shape, **options):
    b = GraphBuilder()
    rank = len(x_shape) - 2
    given_ = {"stride": (1,) * rank, "padding": (0,) * rank, "dilation": (1,) * rank, "groups": 1}
    b.output(b.op("convolution", b.input(tensor(*x_shape)), parameter(b, *w_shape),
                  **{**given_, **options}))  # fmt: skip
    graph = b.build()
    lowered = lower(graph, make_group(graph, [0]))
    assert not isinstance(lowered, Refusal)
    return lowered.nest


def test_a_pointwise_convolution_is_a_plain_product():
    nest = nest_of((2, 8, 5, 5), (6, 8, 1, 1))
    (product,) = [s for s in nest.statements if isinstance(s, Contract)]
    assert len(product.axes) == 1
    assert all(not s.guards for s in nest.statements if isinstance(s, Load))


def test_only_reads_that_may_leave_the_image_are_guarded():
    nest = nest_of((2, 8, 5, 6), (6, 8, 3, 1), padding=(1, 0))
    (read,) = [s for s in nest.statements if isinstance(s, Load) and len(s.guards)]
    assert [guard.high for guard in read.guards] == [5]


def test_what_is_one_for_each_channel_is_read_in_the_padding_as_elsewhere():
    b = GraphBuilder()
    x, scale = b.input(tensor(2, 3, 6, 6)), b.input(tensor(3, 1, 1))
    pooled = b.op("max_pool", b.op("mul", x, scale), kernel=(3, 3), stride=(2, 2), low=(1, 1),
                  high=(1, 1), dilation=(1, 1))  # fmt: skip
    b.output(pooled)
    graph = b.build()
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal)
    loads = [s for s in lowered.nest.statements if isinstance(s, Load)]
    (factor,) = [s for s in loads if not s.guards]
    assert lowered.operands[factor.buffer] == scale


def test_an_image_that_is_the_same_everywhere_has_zeros_around_it():
    b = GraphBuilder()
    x, w = b.input(tensor(2, 3, 1, 1)), b.input(tensor(4, 3, 3, 3))
    wide = b.op("expand", x, shape=(2, 3, 5, 5))
    b.output(b.op("convolution", wide, w, stride=(1, 1), padding=(1, 1), dilation=(1, 1),
                  groups=1))  # fmt: skip
    graph = b.build()
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal), lowered.sentence
    rng = np.random.default_rng(1)
    values = {v: rng.standard_normal(graph.type_of(v).shape, np.float32) for v in (x, w)}
    given_ = [values[v] for v in lowered.operands if v in values]
    found = execute(lowered.nest, given_, precision="f64")[0]
    image = torch.from_numpy(values[x]).double().expand(2, 3, 5, 5)
    want = F.conv2d(image, torch.from_numpy(values[w]).double(), padding=1)
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-5, atol=1e-5)


def test_short_depthwise_kernels_are_written_out_and_long_ones_looped():
    short = nest_of((2, 8, 9, 9), (8, 1, 3, 3), groups=8)
    long = nest_of((2, 8, 9, 9), (8, 1, 7, 7), groups=8)
    assert not any(isinstance(s, Reduce | Contract) for s in short.statements)
    assert sum(isinstance(s, Reduce) for s in long.statements) == 1


class Block(torch.nn.Module):
    """Convolution and norm, a depthwise one, and the way around both."""

    def __init__(self, bias: bool = True, affine: bool = True) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(8, 8, 3, padding=1, bias=bias)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(8, affine=affine) for _ in range(2))
        for norm in self.norms:
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + x).relu()


def ruled(module, x, rules=None):
    captured = capture(module, (x,))
    return captured, apply_rules(captured.graph, load_rules(rules)).program


def results(captured, program, module, x):
    env = dict(zip((i.value for i in program.inputs),
                   captured.bind(module, captured.flatten([x])), strict=True))  # fmt: skip
    for constant in program.constants:
        env[constant.value] = constant_tensor(constant, program.type_of(constant.value))
    with torch.no_grad():
        run(program, range(len(program.nodes)), env)
    return env[program.outputs[0].value]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_folded_norms_leave_the_convolutions_and_the_result(bias, affine):
    module, x = Block(bias, affine).eval(), torch.randn(2, 8, 6, 7)
    captured, program = ruled(module, x)
    constant = constant_nodes(program)
    left = [node.op for i, node in enumerate(program.nodes) if i not in constant]
    assert left == ["convolution", "relu", "convolution", "add", "relu"]
    folded = [node.op for i, node in enumerate(program.nodes) if holds_norm(program, i)]
    assert folded == ["convolution", "convolution"]
    assert graph_from_json(program.to_json()).digest == program.digest
    with torch.no_grad():
        torch.testing.assert_close(results(captured, program, module, x), module(x))


def test_a_norm_whose_convolution_is_read_elsewhere_stays_beside_it():
    class Twice(Block):
        def forward(self, x):
            y = self.first(x)
            return self.norms[0](y) + y

    module, x = Twice().eval(), torch.randn(2, 8, 6, 7)
    captured, program = ruled(module, x)
    constant = constant_nodes(program)
    left = [node.op for i, node in enumerate(program.nodes) if i not in constant]
    assert left == ["convolution", "mul", "add", "add"]
    assert not any(holds_norm(program, i) for i in range(len(program.nodes)))
    with torch.no_grad():
        torch.testing.assert_close(results(captured, program, module, x), module(x))


def test_narrow_norms_are_not_folded():
    module = Block().eval().to(torch.bfloat16)
    _, program = ruled(module, torch.randn(2, 8, 6, 7, dtype=torch.bfloat16))
    assert sum(node.op == "batch_norm" for node in program.nodes) == 2


def test_images_between_convolutions_have_their_channels_innermost():
    _, program = ruled(Block().eval(), torch.randn(2, 8, 6, 7))
    strides = [program.type_of(node.output).strides for node in program.nodes
               if node.op in ("convolution", "relu")]  # fmt: skip
    last = (8 * 6 * 7, 1, 8 * 7, 8)
    assert strides == [last, last, last, None]  # the result is the caller's
    depthwise = next(n for n in program.nodes if n.op == "convolution" and n.attr("groups") == 8)
    assert program.type_of(depthwise.inputs[1]).strides[0] == 1


def test_a_single_convolution_keeps_the_callers_layout():
    _, program = ruled(torch.nn.Conv2d(8, 8, 3), torch.randn(2, 8, 6, 7))
    assert all(type_.strides is None for type_ in program.values)


def test_windows_over_many_channels_are_read_from_a_copy_with_channels_innermost():
    module = torch.nn.Sequential(torch.nn.Conv2d(16, 8, 3), torch.nn.ReLU())
    x = torch.randn(2, 16, 6, 7)
    captured, program = ruled(module, x)
    copy, convolution, relu = program.nodes
    assert (copy.op, convolution.op, relu.op) == ("reshape", "convolution", "relu")
    assert program.type_of(copy.output).strides == (16 * 6 * 7, 1, 16 * 7, 16)
    assert program.type_of(convolution.output).strides == (8 * 4 * 5, 1, 8 * 5, 8)
    assert program.type_of(relu.output).strides is None
    with torch.no_grad():
        torch.testing.assert_close(results(captured, program, module, x), module(x))


def test_an_image_read_by_two_convolutions_is_copied_once():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (torch.nn.Conv2d(16, 8, 3) for _ in range(2))

        def forward(self, x):
            return self.first(x) + self.second(x)

    _, program = ruled(Two(), torch.randn(1, 16, 6, 7))
    assert [node.op for node in program.nodes].count("reshape") == 1


@pytest.mark.parametrize(
    ("module", "x"),
    [
        (torch.nn.Conv2d(16, 8, 1), torch.randn(2, 16, 6, 7)),
        (torch.nn.Conv2d(32, 8, 3, groups=2), torch.randn(2, 32, 6, 7)),
        (
            torch.nn.Conv2d(16, 8, 3),
            torch.randn(2, 16, 6, 7).to(memory_format=torch.channels_last),
        ),
    ],
    ids=["one position", "groups", "innermost already"],
)
def test_other_images_are_not_copied(module, x):
    _, program = ruled(module, x)
    assert [node.op for node in program.nodes] == ["convolution"]


def test_both_rules_can_be_turned_off():
    off = "version: 1\nrules:\n  - {name: fold-batch-norm, action: none}\n"
    off += "  - {name: channels-last, action: none}\n"
    captured, program = ruled(Block().eval(), torch.randn(2, 8, 6, 7), off)
    assert program == captured.graph


def test_a_callers_depthwise_weights_keep_their_layout():
    """Where no norm is folded into them they are the program's inputs."""
    b = GraphBuilder()
    x = b.input(tensor(1, 8, 6, 6))
    settings_ = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 8}
    y = b.op("convolution", x, parameter(b, 8, 1, 3, 3), **settings_)
    b.output(b.op("convolution", b.op("relu", y), parameter(b, 8, 1, 3, 3), **settings_))
    program = apply_rules(b.build(), load_rules()).program
    assert all(program.type_of(given.value).strides is None for given in program.inputs)
    assert any(kind.strides is not None for kind in program.values)
