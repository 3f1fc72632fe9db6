"""`OptimizedModule`: behaves as the model does, and runs a plan where that is the same thing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch

from graph_autofusion.capturing import Wrapper
from graph_autofusion.options import Options
from graph_autofusion.report import FusionReport, fallback_report
from graph_autofusion.resolution import PlanSource
from graph_autofusion.runner import Runner
from kernel_gen.errors import InvalidInput
from kernel_gen.frontend.exporting import FunctionModule
from kernel_gen.runtime.plan import Plan

_RUNNER = "_gaf_runner"
# Held in common with the model: `.to`, `load_state_dict` and hooks act on the model.
_SHARED = (
    "_parameters",
    "_buffers",
    "_modules",
    "_non_persistent_buffers_set",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
)


class OptimizedModule(Wrapper):
    """A model with plans. Parameters, buffers, submodules, hooks, attributes are the model's own.

    Plans are found, or searched for, at the first call with a new combination of argument
    structure, dtypes, shapes and strides. Whatever a plan cannot stand in for runs in the model.
    """

    _gaf_runner: Runner

    def __init__(
        self, model: torch.nn.Module, options: Options, source: PlanSource | None = None
    ) -> None:
        super().__init__()
        for name in _SHARED:
            self.__dict__[name] = model.__dict__[name]
        self.__dict__[_RUNNER] = Runner(model, options, source)

    @property
    def wrapped(self) -> torch.nn.Module:
        """The model itself."""
        return self._gaf_runner.module

    # The plan

    @property
    def report(self) -> FusionReport:
        """What became of the program that ran last."""
        last = self._gaf_runner.last
        return fallback_report("not called yet", cache="pending") if last is None else last.report

    @property
    def plan(self) -> Plan:
        """The plan of the program that ran last; raises InvalidInput where there is none."""
        last = self._gaf_runner.last
        if last is None or last.plan is None:
            raise InvalidInput(f"no plan: {self.report.reason or 'call the module first'}")
        return last.plan

    def prepare(self, *args: Any, **kwargs: Any) -> FusionReport:
        """Finds or tunes the plan for such a call. Raises InvalidInput for one that cannot be
        captured because the model does not take it: only where a capture fails the model runs."""
        self._gaf_runner.prepare(args, kwargs)
        return self.report

    def refresh(self) -> None:
        """Packs all weights again: call it after writing to them behind torch's back."""
        self._gaf_runner.refresh()

    # Calling. Hooks are the model's: nn.Module.__call__ would run them a second time.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._gaf_runner.call(args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._gaf_runner.call(args, kwargs)

    # The model's own behaviour

    @property
    def training(self) -> bool:
        """The model's mode."""
        runner = self.__dict__.get(_RUNNER)
        return True if runner is None else bool(runner.module.training)

    @training.setter
    def training(self, mode: bool) -> None:
        runner = self.__dict__.get(_RUNNER)
        if runner is not None:
            runner.module.training = mode

    def train(self, mode: bool = True) -> OptimizedModule:
        self.wrapped.train(mode)
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        self.wrapped.compile(*args, **kwargs)

    def _apply(self, fn: Any, recurse: bool = True) -> OptimizedModule:
        self.wrapped._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.wrapped.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.wrapped.load_state_dict(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        runner = self.__dict__.get(_RUNNER)
        if runner is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(runner.module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        runner = self.__dict__.get(_RUNNER)
        if runner is None:
            super().__setattr__(name, value)
        else:
            setattr(runner.module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.wrapped, name)

    # Python looks these up on the class, so `__getattr__` does not see them.

    def __getitem__(self, index: Any) -> Any:
        return self._indexed[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._indexed[index] = value

    def __len__(self) -> int:
        return len(self._indexed)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._indexed)

    @property
    def _indexed(self) -> Any:
        return self._gaf_runner.module

    def __bool__(self) -> bool:
        return True  # not len(): a model without a length is true as well

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        model = self.wrapped
        # A copied function still reads what the original reads.
        copied = model if isinstance(model, FunctionModule) else copy.deepcopy(model, memo)
        return OptimizedModule(copied, self._gaf_runner.options)

    def __reduce__(self) -> tuple[Any, ...]:
        return (OptimizedModule, (self.wrapped, self._gaf_runner.options))

    def __repr__(self) -> str:
        return f"OptimizedModule({self.wrapped!r})"
