"""Attention that torch runs by one native call: results as in eager, padding and strides, too."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

X = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(3))
PADDING = torch.tensor([[False] * 5, [False, False, False, True, True]])


def layer(**options: Any) -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(16, 4, 32, **options)


def attention(**options: Any) -> nn.Module:
    torch.manual_seed(0)
    return nn.MultiheadAttention(16, 4, **options)


class Inside(nn.Module):
    """Attention as a part; what it returns is laid out anew."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = attention(batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.attention(x, x, x, need_weights=False)[0]).contiguous()


def assert_same(found: Any, wanted: Any) -> None:
    found, wanted = (r if isinstance(r, tuple) else (r,) for r in (found, wanted))
    for mine, eager in zip(found, wanted, strict=True):
        assert (mine is None) is (eager is None)
        if eager is not None:
            torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-5)
            assert mine.stride() == eager.stride()


CASES = {
    "layer": (layer(batch_first=True), (X,), {}, "hit"),
    "layer, sequence first": (layer(), (X,), {}, "hit"),
    "encoder": (nn.TransformerEncoder(layer(batch_first=True), 2), (X,), {}, "hit"),
    "attention, sequence first": (attention(), (X, X, X), {}, "hit"),
    "a part": (Inside(), (X,), {}, "hit"),
    "attention": (attention(batch_first=True), (X, X, X), {}, "lays out"),
    "padded encoder": (
        nn.TransformerEncoder(layer(batch_first=True), 2),
        (X,),
        {"src_key_padding_mask": PADDING},
        "masked positions",
    ),
    "padded attention": (
        attention(batch_first=True),
        (X, X, X),
        {"key_padding_mask": PADDING, "need_weights": False},
        "masked positions",
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:TransformerEncoder")
def test_a_call_gives_what_eager_gives(wrap: Any, name: str) -> None:
    model, args, kwargs, said = CASES[name]
    model.eval()
    with torch.no_grad():
        wanted = model(*args, **kwargs)
        fast = wrap(model, strict=False)
        if said == "hit":
            found = fast(*args, **kwargs)
        else:
            with pytest.warns(UserWarning, match=said):
                found = fast(*args, **kwargs)
            assert said in fast.report.reason
        assert fast.report.cache == ("hit" if said == "hit" else "fallback")
        assert_same(found, wanted)
        assert_same(fast(*args, **kwargs), wanted)
