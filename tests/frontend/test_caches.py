"""Caches of `transformers` as results."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_gen.frontend import capture
from kernel_gen.frontend.caches import register_caches
from kernel_gen.frontend.torch_run import TorchProgram
from tests.frontend.as_eager import assert_as_eager

X = torch.arange(48, dtype=torch.float32).reshape(1, 2, 6, 4)


def _tensors(value: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def test_caches_of_encoders_and_decoders() -> None:
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    def program(x: torch.Tensor) -> Any:
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        keys, _ = cache.self_attention_cache.update(x * 2, x + 1, 0)
        cache.cross_attention_cache.update(keys.relu(), x, 0)
        cache.is_updated[0] = True
        return keys.sum(), cache

    captured = capture(program, (X,))
    inputs = captured.bind(program, captured.flatten([X], {}) or [])
    results = [captured.rebuild(inputs, TorchProgram(captured.graph)(*inputs)) for _ in range(2)]
    for want, got in zip(_tensors(program(X)), _tensors(results[0]), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)
    caches = [cache for _, cache in results]
    assert type(caches[0]) is EncoderDecoderCache
    assert caches[0].get_seq_length() == 6
    caches[0].is_updated[0] = False
    assert caches[1].is_updated == {0: True}
    caches[0].self_attention_cache.update(X, X, 0)
    assert [cache.get_seq_length() for cache in caches] == [12, 6]


def test_layers_that_hold_states() -> None:
    from transformers.cache_utils import LinearAttentionLayer

    register_caches()

    def program(x: torch.Tensor) -> Any:
        layer = LinearAttentionLayer()
        layer.update_recurrent_state(x * 2)
        y = x + 1
        y.mul_(2)  # is made functional
        return y, layer

    captured = assert_as_eager(program, (X,))
    assert len(captured.graph.outputs) == 2
