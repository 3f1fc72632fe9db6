"""The two programs of the ablation, their strategies, and the seed article's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from benchmarks.ablation.strategies import (
    AUTOMATIC,
    BY_ELEMENT,
    NONE,
    WITH_PRODUCTS,
    WITH_REDUCTIONS,
    WITH_TRANSPOSES,
    Strategy,
)
from benchmarks.suite.workloads.models import llama2_7b_layer_decode, resnet50

_LLAMA_LAYERS = 32
_IMAGES = 8


@dataclass(frozen=True, slots=True)
class Program:
    """A model to take apart. `figure` turns microseconds per call into `unit`; `article` are the
    article's figures by strategy, taken on an NPU."""

    name: str
    title: str
    build: Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]
    strategies: tuple[Strategy, ...]
    unit: str
    figure: Callable[[float], float]
    article: Mapping[str, float]


PROGRAMS = {
    "llama": Program(
        "llama",
        "LLaMA-2-7B, one layer, decode of one token after 128 (times 32 layers)",
        llama2_7b_layer_decode,
        (NONE, BY_ELEMENT, WITH_REDUCTIONS, WITH_PRODUCTS, AUTOMATIC),
        "ms per token",
        lambda us: us * _LLAMA_LAYERS / 1000,
        dict(zip(
            ("none", "elementwise", "+ reduction", "+ matmul", "automatic"),
            (45, 38, 32, 28, 27), strict=True,
        )),
    ),
    "resnet": Program(
        "resnet",
        f"ResNet-50, batch {_IMAGES}, 224 x 224",
        lambda: resnet50(_IMAGES),
        (NONE, BY_ELEMENT, WITH_TRANSPOSES, AUTOMATIC),
        "images/s",
        lambda us: _IMAGES / (us * 1e-6),
        dict(zip(
            ("none", "elementwise", "+ transpose", "automatic"), (420, 480, 520, 540), strict=True
        )),
    ),
}  # fmt: skip
