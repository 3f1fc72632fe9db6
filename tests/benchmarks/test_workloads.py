"""Workloads are the same in every process, and what they have to do is counted right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.suite.correctness import judge, max_error
from benchmarks.suite.peers.work import leaves
from benchmarks.suite.reference import Effort, effort, load_reference, reference, save_reference
from benchmarks.suite.workloads import BUILDERS, load_case
from benchmarks.suite.workloads.losses import adam_step, cross_entropy
from benchmarks.suite.workloads.models import bert_layer

NAMED = (
    "ln_relu_mm rms_res softmax_mask gelu_bias_res ln_gelu trans_add_relu swiglu groupnorm_silu "
    "bn_relu_add conv_bn_relu dwconv_bn_hswish rope attention cross_entropy adam_step rec_tower "
    "concat_wide quant_dequant mlp_bf16 gemv_swiglu mul_sum gather_add bert_base_2l gpt2_block "
    "llama2_7b_layer_decode vit_b_block resnet50 dlrm"
)
SMALL = ("softmax_mask", "rec_tower", "swiglu", "concat_wide", "dlrm", "quant_dequant")


def test_the_suite_has_the_workloads_it_is_quoted_for() -> None:
    assert set(NAMED.split()) <= set(BUILDERS)


@pytest.mark.parametrize("name", SMALL)
def test_a_workload_is_the_same_in_every_process(name: str) -> None:
    first, second = load_case(name), load_case(name)
    with torch.no_grad():
        results = zip(leaves(first[0](*first[1])), leaves(second[0](*second[1])), strict=True)
    assert all(max_error(a, b) == 0.0 for a, b in results)


def test_cross_entropy_gives_torchs_loss_and_gradient() -> None:
    logits, labels = torch.randn(8, 32, requires_grad=True), torch.randint(0, 32, (8,))
    want = torch.nn.functional.cross_entropy(logits, labels)
    want.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        loss, gradient = cross_entropy(logits, labels)
    assert logits.grad is not None
    torch.testing.assert_close(loss, want)
    torch.testing.assert_close(gradient, logits.grad)


def test_adam_step_is_torchs_adam() -> None:
    weight = torch.nn.Parameter(torch.randn(64))
    ours = [weight.detach().clone(), torch.zeros(64), torch.zeros(64)]
    adam = torch.optim.Adam([weight], lr=1e-3)
    for step in (1.0, 2.0):
        weight.grad = torch.randn(64)
        adam.step()
        adam_step(*ours, weight.grad, torch.tensor(step))
    torch.testing.assert_close(ours[0], weight.detach())


def counted(model: object, *inputs: torch.Tensor) -> Effort:
    with torch.no_grad():
        return effort((model, inputs, "eager"))  # type: ignore[arg-type]


def test_bytes_count_each_input_once_and_products_are_counted() -> None:
    x, w = torch.randn(8, 16), torch.randn(16, 4)
    found = counted(lambda x, w: torch.relu(x @ w) + x.sum(), x, w)
    assert found.read_bytes == 4 * (8 * 16 + 16 * 4)
    assert found.written_bytes == 4 * 8 * 4
    assert found.operations == 2 * 8 * 16 * 4
    assert found.dtype == "float32"


def test_a_view_reads_nothing_and_a_broadcast_operand_is_read_once() -> None:
    x = torch.randn(4, 1)
    assert counted(lambda x: x.expand(4, 100).t() + 1, x).read_bytes == 16
    assert counted(lambda x: x.t(), x).read_bytes == 0


def test_of_a_table_only_the_rows_that_are_asked_for_count() -> None:
    table, ids = torch.nn.Embedding(1000, 8), torch.tensor([3, 5])
    found = counted(table, ids)
    assert found.read_bytes == 2 * 8 * 4 + 2 * 8
    assert found.weight_bytes == 1000 * 8 * 4


def test_written_inputs_are_found_and_counted() -> None:
    def load() -> tuple[object, tuple[torch.Tensor, ...], str]:
        return (lambda x, y: x.add_(y) * 2), (torch.ones(4), torch.ones(4)), "eager"

    with torch.no_grad():
        found, figures = reference(load)  # type: ignore[arg-type]
    assert found.mutated == (0,)
    assert [t.tolist() for t in found.expected.eager] == [[4.0] * 4, [2.0] * 4]
    assert found.expected.exact[0].dtype == torch.float64
    assert (figures.read_bytes, figures.written_bytes) == (32, 32)


def test_attention_counts_both_products() -> None:
    q, k, v = (torch.randn(1, 2, 8, 4) for _ in range(3))
    attention = torch.nn.functional.scaled_dot_product_attention
    found = counted(attention, q, k, v)
    assert found.operations == 2 * (2 * 2 * 8 * 8 * 4)
    assert found.functions == {"exp": 2 * 8 * 8}


def test_exponentials_and_their_kin_are_counted_by_function() -> None:
    gelu, silu = torch.nn.functional.gelu, torch.nn.functional.silu

    def program(x: torch.Tensor) -> torch.Tensor:
        wide = torch.cat([x, x]).sigmoid_()
        return gelu(silu(x)) + gelu(x, approximate="tanh") + wide[:3] + x.square()

    assert counted(program, torch.randn(3, 5)).functions == {"sigmoid": 45, "erf": 15, "tanh": 15}


def test_activations_are_what_lives_at_a_time() -> None:
    found = counted(lambda x: x.exp().sin().cos(), torch.ones(1000))
    assert 8000 <= found.activation_bytes <= 12000


def test_a_reference_is_read_back(tmp_path: Path) -> None:
    with torch.no_grad():
        found, _ = reference(lambda: load_case("rec_tower"))
        save_reference(found, tmp_path / "reference.pt")
        back = load_reference(tmp_path / "reference.pt")
        model, inputs, _ = load_case("rec_tower")
        assert not judge(leaves(model(*inputs)), back.expected).wrong
    assert back.mutated == ()


def test_a_model_of_the_search_benchmark_runs() -> None:
    model, inputs = bert_layer()
    with torch.no_grad():
        assert model.eval()(*inputs).shape == (4, 128, 768)
