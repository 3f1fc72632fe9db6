"""What a contender is built from, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Work:
    """A workload to build. `mutated` are the positions of inputs that a call writes in place."""

    model: Callable[..., Any]
    inputs: tuple[Any, ...]
    mutated: tuple[int, ...] = ()
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Built:
    """A contender that can be called.

    `run` makes one call with fresh outputs; `results` turns what it gives into tensors: the
    program's outputs in order, then the written inputs. `facts` go into the record as they are.
    """

    run: Callable[[], Any]
    results: Callable[[Any], list[Tensor]]
    facts: dict[str, Any] = field(default_factory=dict)


def leaves(value: Any) -> list[Tensor]:
    """Tensors of a nested result, in order."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if torch.is_tensor(leaf)]


def call_in_place(work: Work, call: Callable[..., Any], **facts: Any) -> Built:
    """A contender that is called as the model is, and writes its inputs as the model does."""
    inputs, mutated = work.inputs, work.mutated

    def results(outputs: Any) -> list[Tensor]:
        return leaves(outputs) + [inputs[i] for i in mutated]

    return Built(lambda: call(*inputs), results, facts)


class Functional(nn.Module):
    """The program as tensors -> tuple of tensors, for peers whose programs write no inputs: what
    it would write comes back as further outputs."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.model = work.model
        self._mutated = work.mutated

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        held = [x.clone() if i in self._mutated else x for i, x in enumerate(inputs)]
        outputs = self.model(*held)
        return (*leaves(outputs), *(held[i] for i in self._mutated))


def exported(work: Work) -> torch.export.ExportedProgram:
    """The functional program as torch.export gives it."""
    return torch.export.export(Functional(work).eval(), work.inputs, strict=False)


def tensors_of(work: Work) -> tuple[Tensor, ...]:
    """The inputs; raises TypeError where one is no tensor."""
    for value in work.inputs:
        if not torch.is_tensor(value):
            raise TypeError(f"an input is a {type(value).__name__}, not a tensor")
    return work.inputs
