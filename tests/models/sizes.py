"""How large the models are: `SMALL` for tests, `MEDIUM` for searches, whose times shall differ."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

HEADS = 4


@dataclass(frozen=True)
class Size:
    """Extents of a model: `inner` of the feed-forward layers, `length` of a sequence, `image` of a
    side in pixels; `channels` of the first of ResNet's stages, `slim` of MobileNet's full width."""

    words: int
    width: int
    inner: int
    length: int
    image: int
    channels: int
    slim: float

    @property
    def layers(self) -> dict[str, int]:
        """As the configurations of most transformers name them."""
        return {
            "hidden_size": self.width,
            "num_hidden_layers": 2,
            "num_attention_heads": HEADS,
            "intermediate_size": self.inner,
        }

    def ids(self, length: int = 0) -> Tensor:
        """Two rows of words."""
        return torch.randint(1, self.words, (2, length or self.length))

    def mask(self) -> Tensor:
        """Ones, and zeros at the end of the last row."""
        mask = torch.ones(2, self.length, dtype=torch.int64)
        mask[-1, self.length // 2 :] = 0
        return mask


SMALL = Size(words=96, width=32, inner=80, length=9, image=64, channels=8, slim=0.25)
MEDIUM = Size(words=1000, width=128, inner=512, length=32, image=96, channels=32, slim=1.0)
