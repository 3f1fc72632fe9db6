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
IMAGES = 8


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


def programs_of(images: int) -> dict[str, Program]:
    """The programs by name, ResNet-50 with a batch of `images`."""
    return {**PROGRAMS, "resnet": _resnet(images)}


def _resnet(images: int) -> Program:
    return Program(
        "resnet",
        f"ResNet-50, batch {images}, 224 x 224",
        lambda: resnet50(images),
        (NONE, BY_ELEMENT, WITH_TRANSPOSES, AUTOMATIC),
        "images/s",
        lambda us: images / (us * 1e-6),
        dict(zip(
            ("none", "elementwise", "+ transpose", "automatic"), (420, 480, 520, 540), strict=True
        )),
    )  # fmt: skip


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
    "resnet": _resnet(IMAGES),
}  # fmt: skip
