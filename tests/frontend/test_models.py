"""Small transformers models with random weights: captured whole, and equal to eager."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.frontend.as_eager import assert_as_eager, ops, targets

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers")

IDS = torch.randint(0, 90, (2, 7), generator=torch.Generator().manual_seed(0))
PIXELS = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SMALL = {"vocab_size": 90, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4} | {
    "intermediate_size": 64
}


def _bert() -> nn.Module:
    return transformers.BertModel(transformers.BertConfig(**SMALL, max_position_embeddings=32))


def _gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=90, n_embd=32, n_layer=2, n_head=4, n_positions=32, use_cache=False
    )
    return transformers.GPT2LMHeadModel(config)


def _llama(**options: Any) -> nn.Module:
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, **options)
    return transformers.LlamaForCausalLM(config)


def _vit() -> nn.Module:
    small = {k: v for k, v in SMALL.items() if k != "vocab_size"}
    return transformers.ViTModel(transformers.ViTConfig(**small, image_size=32, patch_size=8))


def _resnet() -> nn.Module:
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
    )
    return transformers.ResNetModel(config)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "args", "kwargs", "expected", "limit"),
    [
        (_bert, (IDS,), {}, {"linear": 13, "attention": 2, "layer_norm": 5, "gelu": 2}, 70),
        (
            _bert,
            (IDS,),
            {"attention_mask": torch.tensor([[1] * 7, [1] * 4 + [0] * 3])},
            {"linear": 13, "attention": 2, "layer_norm": 5, "gelu": 2},
            85,
        ),
        (_gpt2, (IDS,), {}, {"linear": 9, "attention": 2, "layer_norm": 5, "tanh": 2}, 140),
        (
            lambda: _llama(use_cache=False),
            (IDS,),
            {},
            {"linear": 15, "attention": 2, "silu": 2, "mean": 5},
            180,
        ),
        (_vit, (PIXELS,), {}, {"linear": 13, "attention": 2, "convolution": 1}, 70),
        (_resnet, (PIXELS,), {}, {"convolution": 6, "batch_norm": 6, "relu": 5}, 25),
    ],
    ids=["bert", "bert_masked", "gpt2", "llama", "vit", "resnet"],
)
def test_model(
    make: Callable[[], nn.Module],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    expected: dict[str, int],
    limit: int,
) -> None:
    torch.manual_seed(0)
    captured = assert_as_eager(make().eval(), args, kwargs)
    found = ops(captured)
    assert {op: found[op] for op in expected} == expected
    assert len(captured.graph.nodes) <= limit
    assert not targets(captured)


@pytest.mark.filterwarnings("ignore")
def test_key_value_caches_pass_as_results() -> None:
    torch.manual_seed(0)
    model = _llama().eval()
    captured = assert_as_eager(model, (IDS,), exact=True)
    assert len(captured.results) == 1 + 2 * 2
