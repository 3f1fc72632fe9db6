"""Blocks and models with random weights, from `transformers` configurations."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class LastHidden(nn.Module):
    """A transformers encoder as ids -> hidden states."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        hidden: Tensor = self.model(input_ids=ids).last_hidden_state
        return hidden


class Block(nn.Module):
    """A transformers block as hidden states -> hidden states."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, hidden: Tensor) -> Tensor:
        out = self.block(hidden)
        first: Tensor = out[0] if isinstance(out, tuple) else out
        return first


class LlamaDecode(nn.Module):
    """One decoder layer on one new token: rotary position, cached keys and values, both extended.

    Inputs: hidden (1, 1, width), keys and values (1, heads, cached, width / heads). The cache that
    comes back holds the new token as well, as in `transformers`' dynamic cache.
    """

    def __init__(self, config: Any, cached: int) -> None:
        super().__init__()
        llama = _module("llama")
        self.layer = llama.LlamaDecoderLayer(config, layer_idx=0)
        cos, sin = llama.LlamaRotaryEmbedding(config)(torch.empty(1), torch.tensor([[cached]]))
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, hidden: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        cache = _Cache(keys, values)
        out = self.layer(hidden, cache=cache, position_embeddings=(self.cos, self.sin))
        first = out[0] if isinstance(out, tuple) else out
        return first, cache.keys, cache.values


class _Cache:
    """What an attention layer asks of a cache: `update`."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values

    def update(
        self, keys: Tensor, values: Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        self.keys = torch.cat([self.keys, keys], -2)
        self.values = torch.cat([self.values, values], -2)
        return self.keys, self.values


class Logits(nn.Module):
    """A transformers classifier as pixels -> logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor) -> Tensor:
        logits: Tensor = self.model(pixel_values=pixels).logits
        return logits


def _module(name: str) -> Any:
    """The modelling module of a family, imported only where one of its models is built."""
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def bert_encoder(layers: int) -> nn.Module:
    """BERT-base of `layers` layers without a pooler."""
    bert = _module("bert")
    config = bert.BertConfig(num_hidden_layers=layers)
    return LastHidden(bert.BertModel(config, add_pooling_layer=False))


def bert_layer() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """One encoder layer on 4 × 128 tokens."""
    bert = _module("bert")
    config = bert.BertConfig(attn_implementation="sdpa")
    return Block(bert.BertLayer(config)), (torch.randn(4, 128, config.hidden_size),)


def gpt2_block() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """One block of GPT-2 on 1 × 256 tokens."""
    gpt2 = _module("gpt2")
    config = gpt2.GPT2Config(attn_implementation="sdpa")
    return Block(gpt2.GPT2Block(config, layer_idx=0)), (torch.randn(1, 256, config.n_embd),)


def llama2_7b_layer_decode(cached: int = 128) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """One layer of LLaMA-2-7B on a token after `cached` ones."""
    config = _module("llama").LlamaConfig(
        hidden_size=4096,
        intermediate_size=11008,
        num_attention_heads=32,
        num_key_value_heads=32,
        num_hidden_layers=1,
        attn_implementation="sdpa",
    )
    shape = (1, 32, cached, 128)
    inputs = (torch.randn(1, 1, 4096), torch.randn(*shape), torch.randn(*shape))
    return LlamaDecode(config, cached), inputs


def vit_b_block() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """One block of ViT-B/16 on eight images (197 tokens)."""
    vit = _module("vit")
    config = vit.ViTConfig(attn_implementation="sdpa")
    return Block(vit.ViTLayer(config)), (torch.randn(8, 197, config.hidden_size),)


def resnet50(batch: int = 8) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """ResNet-50 with statistics as after training, on `batch` images of 224²."""
    resnet = _module("resnet")
    config = resnet.ResNetConfig(num_labels=1000)
    model = Logits(resnet.ResNetForImageClassification(config)).eval()
    _settle(model, torch.randn(2, 3, 224, 224))
    return model, (torch.randn(batch, 3, 224, 224),)


def _settle(model: nn.Module, pixels: Tensor) -> None:
    """Sets the running statistics to those of a batch: random weights would blow up otherwise."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    with torch.no_grad():
        model(pixels)
    for norm in norms:
        norm.eval()


BUILDERS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "bert_base_2l": lambda: (bert_encoder(2), (torch.randint(0, 30522, (4, 128)),)),
    "gpt2_block": gpt2_block,
    "llama2_7b_layer_decode": llama2_7b_layer_decode,
    "vit_b_block": vit_b_block,
    "resnet50": resnet50,
}
