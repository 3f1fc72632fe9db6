"""`Program`: what is known of one call signature of a model; `Ready`: what runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from graph_autofusion.guards import (
    PLAIN,
    are_weights_cached,
    is_forward_differentiated,
    tensors_alike,
)
from graph_autofusion.model_guard import ModelGuard
from graph_autofusion.poller import Poller
from graph_autofusion.report import FusionReport
from kernel_gen.frontend import Captured
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import BoundPlan

_MAX_FAILURES = 3


class Ready:
    """A plan bound to a model's weights and what must hold for it to run; never changed, so that
    threads see one or another, whole. Without `bound` the model runs itself."""

    __slots__ = ("_alike", "_constants", "_without_grad", "bound", "captured", "guard", "is_direct")

    def __init__(
        self, guard: ModelGuard, captured: Captured | None = None, bound: BoundPlan | None = None
    ) -> None:
        self.guard = guard
        self.captured = captured
        self.bound = bound
        self.is_direct = captured is not None and captured.is_single and not captured.mutations
        self._constants = list({id(tensor): tensor for tensor in guard.constants}.values())
        self._without_grad = True  # runs with gradients disabled only
        self._alike: tuple[int, Callable[..., bool], Callable[..., bool]] | None = None

    def remember(self, args: Sequence[Any]) -> None:
        """A call with these positional arguments has passed all guards: let `accepts` know it."""
        plain = self.captured is None or self.captured.is_plain
        is_repeated = len(set(map(id, args))) < len(args)  # would pass for tensors of their own
        if plain and args and not is_repeated and all(type(arg) in PLAIN for arg in args):
            constants = tensors_alike(self._constants) if self._constants else _true
            self._without_grad = any(t.requires_grad for t in (*args, *self._constants))
            self._alike = (len(args), tensors_alike(args), constants)

    def accepts(self, args: tuple[Any, ...]) -> bool:
        """Whether a call is like the remembered one, and model and modes are as they were then.

        False says nothing: the slow path finds out.
        """
        alike = self._alike
        if alike is None or torch._C._len_torch_function_stack():
            return False
        if self._without_grad and torch.is_grad_enabled():
            return False
        if is_forward_differentiated() or are_weights_cached():
            return False
        count, inputs, constants = alike
        return (
            len(args) == count
            and inputs(*args)
            and constants(*self._constants)
            and self.guard.is_same()
        )


def _true() -> bool:
    return True


@dataclass(slots=True, eq=False)
class Program:
    """One captured program. `poller` waits for its plan; `failures` counts the attempts in a row
    that led to none."""

    report: FusionReport
    ready: Ready
    captured: Captured | None = None
    plan: Plan | None = None
    poller: Poller | None = None
    failures: int = 0

    @property
    def is_hopeless(self) -> bool:
        """Whether to leave the program to the framework, even if the model changes again."""
        return self.failures >= _MAX_FAILURES
