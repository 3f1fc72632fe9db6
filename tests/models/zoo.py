"""Models with random weights: the architecture whole, widths and depths small.

A fusion rate does not depend on the number of equal layers.

From `transformers` configurations where there is one; the router and the recommender by hand.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.sizes import HEADS, SMALL, Size

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers


@dataclass(frozen=True)
class Case:
    """A model in eval mode and a call of it; floating inputs are cast to the dtype under test."""

    module: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def bert(size: Size) -> Case:
    """Tied output weights, a padding mask, token types, dropout of 0.1 that eval turns off."""
    config = transformers.BertConfig(
        **size.layers, vocab_size=size.words, max_position_embeddings=64
    )
    kwargs = {"attention_mask": size.mask(), "token_type_ids": torch.zeros_like(size.mask())}
    return Case(transformers.BertForMaskedLM(config), (size.ids(),), kwargs)


def _gpt2(size: Size) -> Any:
    config = transformers.GPT2Config(
        vocab_size=size.words,
        n_embd=size.width,
        n_layer=2,
        n_head=HEADS,
        n_positions=64,
        use_cache=False,
    )
    return transformers.GPT2LMHeadModel(config)


def gpt2(size: Size) -> Case:
    """A causal mask; the output weights are the embedding's."""
    return Case(_gpt2(size), (size.ids(),))


def gpt2_embedded(size: Size) -> Case:
    """Embeddings as inputs, in place of tokens."""
    return Case(_gpt2(size), (), {"inputs_embeds": torch.randn(2, size.length, size.width)})


def _llama(size: Size, **options: Any) -> Any:
    known = {**size.layers, "vocab_size": size.words, "num_key_value_heads": 2, **options}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**known))


def llama(size: Size) -> Case:
    """Grouped heads, rotary positions; a causal mask joined with one for padding."""
    return Case(_llama(size, use_cache=False), (size.ids(),), {"attention_mask": size.mask()})


class _Decoder(nn.Module):
    """One token behind cached keys and values, which are returned with the new ones."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.model = _llama(size, num_hidden_layers=1)

    def forward(self, ids: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache(config=self.model.config)
        for layer in range(self.model.config.num_hidden_layers):
            cache.update(keys[layer], values[layer], layer)
        found = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        layers = found.past_key_values.layers
        return found.logits, *(layer.keys for layer in layers), *(layer.values for layer in layers)


def llama_decode(size: Size) -> Case:
    """A step of generation."""
    cached = (1, 2, 2, 2 * size.length - 1, size.width // HEADS)  # layers, batch, heads, …, depth
    return Case(_Decoder(size), (size.ids(1), torch.randn(cached), torch.randn(cached)))


def vit(size: Size) -> Case:
    """Patches by a convolution, a class token."""
    side = size.image // 2
    config = transformers.ViTConfig(**size.layers, image_size=side, patch_size=8)
    return Case(transformers.ViTForImageClassification(config), (torch.randn(2, 3, side, side),))


def resnet50(size: Size) -> Case:
    """All 53 convolutions of ResNet-50; its widths are those of 64 `channels`."""
    config = transformers.ResNetConfig(
        embedding_size=size.channels,
        hidden_sizes=[size.channels * times for times in (4, 8, 16, 32)],
        depths=[3, 4, 6, 3],
        num_labels=10,
    )
    image = torch.randn(1, 3, size.image, size.image)
    return Case(transformers.ResNetForImageClassification(config), (image,))


def t5(size: Size) -> Case:
    """Encoder and decoder: relative positions, causal and crossed attention."""
    config = transformers.T5Config(
        vocab_size=size.words,
        d_model=size.width,
        d_kv=size.width // HEADS,
        d_ff=size.inner,
        num_layers=1,
        num_heads=HEADS,
        use_cache=False,
        feed_forward_proj="gated-gelu",
    )
    kwargs = {"attention_mask": size.mask(), "decoder_input_ids": size.ids(size.length // 2 + 1)}
    return Case(transformers.T5ForConditionalGeneration(config), (size.ids(),), kwargs)


def whisper(size: Size) -> Case:
    """The encoder: two convolutions along time, fixed positions from a buffer."""
    config = transformers.WhisperConfig(
        d_model=size.width,
        encoder_layers=2,
        encoder_attention_heads=HEADS,
        encoder_ffn_dim=size.inner,
        num_mel_bins=16,
        max_source_positions=2 * size.length + 2,
    )
    model = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    return Case(model, (torch.randn(2, 16, 4 * size.length + 4),))


def mobilenet(size: Size) -> Case:
    """MobileNetV2: inverted residuals with depthwise convolutions."""
    config = transformers.MobileNetV2Config(
        depth_multiplier=size.slim, image_size=size.image, num_labels=10
    )
    model = transformers.MobileNetV2ForImageClassification(config)
    return Case(model, (torch.randn(1, 3, size.image, size.image),))


class _Mixture(nn.Module):
    """A Mixtral-style layer: of eight experts each token takes two, by softmax and top-k."""

    def __init__(self, width: int, inner: int, experts: int = 8, taken: int = 2):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.ParameterList(_weight(inner, width) for _ in range(experts))
        self.side = nn.ParameterList(_weight(inner, width) for _ in range(experts))
        self.down = nn.ParameterList(_weight(width, inner) for _ in range(experts))
        self.taken = taken

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.norm(x).flatten(0, 1)
        logits = self.gate(rows)
        values, chosen = F.softmax(logits.float(), -1).topk(self.taken, -1)
        values = (values / values.sum(-1, keepdim=True)).to(x.dtype)
        made = torch.zeros_like(rows)
        for expert, weights in enumerate(zip(self.up, self.side, self.down, strict=True)):
            up, side, down = weights
            share = torch.where(chosen == expert, values, 0).sum(-1, keepdim=True)
            made = made + F.linear(F.silu(F.linear(rows, up)) * F.linear(rows, side), down) * share
        return x + made.view_as(x), logits


def _weight(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns) / columns**0.5)


def mixture(size: Size) -> Case:
    """The router with its experts."""
    model = _Mixture(size.width, size.inner // 2)
    return Case(model, (torch.randn(2, size.length, size.width),))


class _Recommender(nn.Module):
    """DLRM: an MLP over numbers, summed embeddings of categories, the products of all pairs."""

    def __init__(self, words: int, width: int, tables: int = 4) -> None:
        super().__init__()
        depth = width // 2
        self.bags = nn.ModuleList(nn.EmbeddingBag(words, depth, mode="sum") for _ in range(tables))
        self.bottom = _mlp(13, width, depth)
        self.top = _mlp(depth + (tables + 1) * tables // 2, width, 1)
        rows, columns = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        dense = self.bottom(numbers).relu()
        sparse = [bag(categories[:, i]) for i, bag in enumerate(self.bags)]
        features = torch.stack([dense, *sparse], 1)
        pairs = torch.bmm(features, features.transpose(1, 2))[:, self.rows, self.columns]
        return torch.sigmoid(self.top(torch.cat([dense, pairs], 1)))


def _mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def dlrm(size: Size) -> Case:
    """Three lookups for each of four tables."""
    rows = size.length
    categories = torch.randint(0, size.words, (rows, 4, 3))
    return Case(_Recommender(size.words, size.width), (torch.randn(rows, 13), categories))


MODELS: dict[str, Callable[[Size], Case]] = {
    "BERT": bert,
    "GPT-2": gpt2,
    "GPT-2, embeddings": gpt2_embedded,
    "LLaMA": llama,
    "LLaMA, one token": llama_decode,
    "ViT": vit,
    "ResNet-50": resnet50,
    "T5": t5,
    "Whisper encoder": whisper,
    "MobileNetV2": mobilenet,
    "Mixtral-style layer": mixture,
    "DLRM": dlrm,
}


def case(name: str, dtype: torch.dtype, size: Size = SMALL) -> Case:
    """The model in eval mode with weights and floating inputs of `dtype`, the same every time.

    Biases, scales of norms and running statistics are drawn, too: ones and zeros hide faults.
    """
    torch.manual_seed(0)
    made = MODELS[name](size)
    module = made.module.eval()
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.ndim == 1 and tensor.is_floating_point():
                tensor.add_(torch.rand_like(tensor) * 0.2)
    args, kwargs = cast((made.args, made.kwargs), dtype)
    return Case(module.to(dtype), args, kwargs)


def cast(tree: Any, dtype: torch.dtype) -> Any:
    """Floating tensors of a tree in another type."""
    return torch.utils._pytree.tree_map_only(
        Tensor, lambda x: x.to(dtype) if x.is_floating_point() else x, tree
    )
