"""Models with random weights: the architecture whole, widths and depths small.

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

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

_WORDS, _WIDTH, _HEADS = 96, 32, 4
_SMALL = {
    "vocab_size": _WORDS,
    "hidden_size": _WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": _HEADS,
    "intermediate_size": 80,
}
_GQA = {**_SMALL, "num_key_value_heads": 2}


@dataclass(frozen=True)
class Case:
    """A model in eval mode and a call of it; floating inputs are cast to the dtype under test."""

    module: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def _words(*shape: int) -> Tensor:
    return torch.randint(1, _WORDS, shape)


def _mask(batch: int, length: int) -> Tensor:
    """Ones, and zeros at the end of the last row."""
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length // 2 :] = 0
    return mask


def bert() -> Case:
    """Tied output weights, a padding mask, token types, dropout of 0.1 that eval turns off."""
    config = transformers.BertConfig(**_SMALL, max_position_embeddings=32)
    kwargs = {"attention_mask": _mask(2, 9), "token_type_ids": torch.zeros(2, 9, dtype=torch.int64)}
    return Case(transformers.BertForMaskedLM(config), (_words(2, 9),), kwargs)


def _gpt2_config() -> Any:
    return transformers.GPT2Config(
        vocab_size=_WORDS, n_embd=_WIDTH, n_layer=2, n_head=_HEADS, n_positions=32, use_cache=False
    )


def gpt2() -> Case:
    """A causal mask; the output weights are the embedding's."""
    return Case(transformers.GPT2LMHeadModel(_gpt2_config()), (_words(2, 9),))


def gpt2_embedded() -> Case:
    """Embeddings as inputs, in place of tokens."""
    model = transformers.GPT2LMHeadModel(_gpt2_config())
    return Case(model, (), {"inputs_embeds": torch.randn(2, 9, _WIDTH)})


def _llama(**options: Any) -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**_GQA, **options}))


def llama() -> Case:
    """Grouped heads, rotary positions; a causal mask joined with one for padding."""
    return Case(_llama(use_cache=False), (_words(2, 9),), {"attention_mask": _mask(2, 9)})


class _Decoder(nn.Module):
    """One token behind cached keys and values, which are returned with the new ones."""

    def __init__(self) -> None:
        super().__init__()
        self.model = _llama(num_hidden_layers=1)

    def forward(self, ids: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache(config=self.model.config)
        for layer in range(self.model.config.num_hidden_layers):
            cache.update(keys[layer], values[layer], layer)
        found = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        layers = found.past_key_values.layers
        return found.logits, *(layer.keys for layer in layers), *(layer.values for layer in layers)


def llama_decode() -> Case:
    """A step of generation."""
    cached = (1, 2, 2, 17, _WIDTH // _HEADS)  # layers, batch, heads, positions, depth
    return Case(_Decoder(), (_words(2, 1), torch.randn(cached), torch.randn(cached)))


def vit() -> Case:
    """Patches by a convolution, a class token."""
    small = {name: value for name, value in _SMALL.items() if name != "vocab_size"}
    config = transformers.ViTConfig(**small, image_size=32, patch_size=8)
    return Case(transformers.ViTForImageClassification(config), (torch.randn(2, 3, 32, 32),))


def resnet50() -> Case:
    """All 53 convolutions of ResNet-50; an eighth of its widths."""
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[32, 64, 128, 256], depths=[3, 4, 6, 3], num_labels=10
    )
    return Case(transformers.ResNetForImageClassification(config), (torch.randn(1, 3, 64, 64),))


def t5() -> Case:
    """Encoder and decoder: relative positions, causal and crossed attention."""
    config = transformers.T5Config(
        vocab_size=_WORDS,
        d_model=_WIDTH,
        d_kv=8,
        d_ff=80,
        num_layers=1,
        num_heads=_HEADS,
        use_cache=False,
        feed_forward_proj="gated-gelu",
    )
    kwargs = {"attention_mask": _mask(2, 9), "decoder_input_ids": _words(2, 5)}
    return Case(transformers.T5ForConditionalGeneration(config), (_words(2, 9),), kwargs)


def whisper() -> Case:
    """The encoder: two convolutions along time, fixed positions from a buffer."""
    config = transformers.WhisperConfig(
        d_model=_WIDTH,
        encoder_layers=2,
        encoder_attention_heads=_HEADS,
        encoder_ffn_dim=80,
        num_mel_bins=16,
        max_source_positions=20,
    )
    model = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    return Case(model, (torch.randn(2, 16, 40),))


def mobilenet() -> Case:
    """MobileNetV2: inverted residuals with depthwise convolutions, at a quarter of its width."""
    config = transformers.MobileNetV2Config(depth_multiplier=0.25, image_size=64, num_labels=10)
    model = transformers.MobileNetV2ForImageClassification(config)
    return Case(model, (torch.randn(1, 3, 64, 64),))


class _Mixture(nn.Module):
    """A Mixtral-style layer: of eight experts each token takes two, by softmax and top-k."""

    def __init__(self, width: int = _WIDTH, inner: int = 48, experts: int = 8, taken: int = 2):
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


def mixture() -> Case:
    """The router with its experts."""
    return Case(_Mixture(), (torch.randn(2, 6, _WIDTH),))


class _Recommender(nn.Module):
    """DLRM: an MLP over numbers, summed embeddings of categories, the products of all pairs."""

    def __init__(self, tables: int = 4, depth: int = 16) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, depth, mode="sum") for _ in range(tables))
        self.bottom = _mlp(13, 32, depth)
        self.top = _mlp(depth + (tables + 1) * tables // 2, 32, 1)
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


def dlrm() -> Case:
    """Three lookups for each of four tables, eight examples."""
    return Case(_Recommender(), (torch.randn(8, 13), torch.randint(0, 50, (8, 4, 3))))


MODELS: dict[str, Callable[[], Case]] = {
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


def case(name: str, dtype: torch.dtype) -> Case:
    """The model in eval mode with weights and floating inputs of `dtype`, the same every time.

    Biases, scales of norms and running statistics are drawn, too: ones and zeros hide faults.
    """
    torch.manual_seed(0)
    made = MODELS[name]()
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
