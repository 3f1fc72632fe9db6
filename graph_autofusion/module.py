"""`OptimizedModule`: behaves as the model does, and runs a plan where that is the same thing."""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from graph_autofusion.guards import (
    Call,
    ModelGuard,
    ModelState,
    describe_call,
    framework_reason,
    shares_written_storage,
)
from graph_autofusion.options import OnMiss, Options
from graph_autofusion.report import FusionReport, fallback_report, report_of
from graph_autofusion.resolver import PlanSource, Poller, Resolution, Resolver
from kernel_gen.errors import GafError, InvalidInput
from kernel_gen.frontend import Captured, capture
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import BoundPlan, TorchPlan

_OWN = "_gaf_"
_MAX_PROGRAMS = 64


class GafWarning(UserWarning):
    """A program runs in the framework although a plan was asked for; the message says why."""


@dataclass(slots=True)
class _Program:
    """What is known of one call signature. Without `bound` the framework runs."""

    report: FusionReport
    guard: ModelGuard
    needs_grad: bool
    captured: Captured | None = None
    plan: Plan | None = None
    bound: BoundPlan | None = None
    poller: Poller | None = None


class OptimizedModule(torch.nn.Module):
    """A model with plans. Parameters, buffers, submodules and attributes are the model's own.

    Plans are found, or searched for, at the first call with a new combination of argument
    structure, dtypes, shapes and strides. Whatever a plan cannot stand in for runs in the model.
    """

    def __init__(
        self, model: torch.nn.Module, options: Options, resolver: PlanSource | None = None
    ) -> None:
        super().__init__()
        # One set of parameters, not a copy: `.to`, `load_state_dict` and `train` act on the model.
        for name in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[name] = model.__dict__[name]
        self.__dict__["training"] = model.training
        self._gaf_model: Any = model
        self._gaf_options = options
        self._gaf_programs: dict[Hashable, _Program] = {}
        self._gaf_last: _Program | None = None
        self._gaf_resolver: PlanSource | None = resolver
        self._gaf_lock = threading.RLock()
        self._gaf_warned: set[str] = set()

    @property
    def wrapped(self) -> torch.nn.Module:
        """The model itself."""
        model: torch.nn.Module = self._gaf_model
        return model

    # The plan

    @property
    def report(self) -> FusionReport:
        """What became of the program that ran last."""
        if self._gaf_last is None:
            return fallback_report("not called yet", cache="pending")
        return self._gaf_last.report

    @property
    def plan(self) -> Plan:
        """The plan of the program that ran last; raises InvalidInput where there is none."""
        if self._gaf_last is None or self._gaf_last.plan is None:
            raise InvalidInput(f"no plan: {self.report.reason or 'call the module first'}")
        return self._gaf_last.plan

    def prepare(self, *args: Any, **kwargs: Any) -> FusionReport:
        """Finds or tunes the plan for such a call without running it."""
        call = describe_call(args, kwargs)
        if call.signature is None:
            raise InvalidInput(call.reason)
        self._gaf_last = self._program(call, args, kwargs)
        return self._gaf_last.report

    def refresh(self) -> None:
        """Packs all weights again: call it after writing to them behind torch's back."""
        with self._gaf_lock:
            for program in self._gaf_programs.values():
                self._bind(program)

    # Calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if os.environ.get("GAF_DISABLE") == "1":
            return self._gaf_model(*args, **kwargs)
        call = describe_call(args, kwargs)
        if call.signature is None:
            return self._framework(call.reason, args, kwargs)
        program = self._gaf_programs.get(call.signature)
        if program is None or not self._is_current(program):
            trainable = any(p.requires_grad for p in self._gaf_model.parameters())
            reason = framework_reason(trainable, call.leaves)
            if reason:
                return self._framework(reason, args, kwargs)
            program = self._program(call, args, kwargs)
        self._gaf_last = program
        reason = framework_reason(program.needs_grad, call.leaves)
        if reason:
            return self._framework(reason, args, kwargs)
        if program.bound is None or program.captured is None:
            return self._gaf_model(*args, **kwargs)
        return self._run(program, program.captured, program.bound, args, kwargs)

    def _run(
        self,
        program: _Program,
        captured: Captured,
        bound: BoundPlan,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        inputs = captured.flatten(args, kwargs)
        if inputs is None:
            return self._framework("the call does not fit the captured program", args, kwargs)
        if captured.mutations and shares_written_storage(captured, inputs):
            return self._framework("an input that is written shares storage", args, kwargs)
        try:
            outputs = bound(inputs, torch.get_num_threads())
        except GafError as error:
            if self._gaf_options.strict:
                raise
            program.bound = None
            program.report = replace(program.report, cache="fallback", reason=str(error))
            return self._framework(f"the plan failed: {error}", args, kwargs)
        if captured.is_single and not captured.mutations:
            return outputs[0]
        return captured.rebuild(captured.bind(self._gaf_model, inputs), outputs)

    def _framework(self, reason: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if reason not in self._gaf_warned:
            self._gaf_warned.add(reason)
            warnings.warn(f"running in the framework: {reason}", GafWarning, stacklevel=4)
        return self._gaf_model(*args, **kwargs)

    # Programs

    def _is_current(self, program: _Program) -> bool:
        state = program.guard.check()
        if state is ModelState.WRITTEN:
            with self._gaf_lock:
                self._bind(program)
            return True
        if state is ModelState.CHANGED:
            return False
        if program.poller is not None:
            self._adopt(program)
        return True

    def _adopt(self, program: _Program) -> None:
        with self._gaf_lock:
            found = program.poller.poll() if program.poller is not None else None
            if found is not None and found.plan is not None:
                program.poller = None
                self._install(program, found)

    def _program(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Program:
        with self._gaf_lock:
            known = self._gaf_programs.get(call.signature)
            if known is not None and known.guard.check() is ModelState.SAME:
                return known
            if len(self._gaf_programs) >= _MAX_PROGRAMS:
                self._gaf_programs.clear()
            program = self._prepare(args, kwargs)
            self._gaf_programs[call.signature] = program
            return program

    def _prepare(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Program:
        model = self._gaf_model
        program = _Program(
            report=fallback_report("preparing"),
            guard=ModelGuard(model, ()),
            needs_grad=False,
        )
        try:
            with torch.no_grad():
                program.captured = capture(model, args, example_kwargs=kwargs)
            resolver = self._gaf_resolver = self._gaf_resolver or Resolver(self._gaf_options)
            resolution = resolver.resolve(program.captured.graph)
            self._install(program, resolution)
            if resolution.cache == "pending":
                program.poller = Poller(resolver, program.captured.graph)
        except (GafError, OSError, RuntimeError) as error:
            if self._gaf_options.strict or self._gaf_options.on_miss is OnMiss.ERROR:
                raise
            program.report = fallback_report(f"{type(error).__name__}: {error}")
            self._warn_once(program.report.reason)
        return program

    def _warn_once(self, reason: str) -> None:
        if reason not in self._gaf_warned:
            self._gaf_warned.add(reason)
            warnings.warn(f"running in the framework: {reason}", GafWarning, stacklevel=6)

    def _install(self, program: _Program, resolution: Resolution) -> None:
        """Makes the program run the plan of `resolution`, if it holds one."""
        if resolution.plan is None:
            program.report = fallback_report(resolution.reason, cache=resolution.cache)
            return
        program.plan = resolution.plan
        tuned = resolution.cache == "tuned"
        program.report = report_of(resolution.plan, resolution.cache, tuned_now=tuned)
        self._bind(program)

    def _bind(self, program: _Program) -> None:
        if program.plan is None or program.captured is None:
            return
        constants = list(program.captured.constants(self._gaf_model).values())
        program.guard = ModelGuard(self._gaf_model, constants)
        program.needs_grad = any(tensor.requires_grad for tensor in constants)
        program.bound = TorchPlan(program.plan).bind(constants)

    # The model's own behaviour

    def train(self, mode: bool = True) -> OptimizedModule:
        self._gaf_model.train(mode)
        self.__dict__["training"] = mode
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self._gaf_model.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self._gaf_model.load_state_dict(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        model = self.__dict__.get(f"{_OWN}model")
        if model is None or name.startswith(_OWN):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(model, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith(_OWN):
            self.__dict__[name] = value
        elif f"{_OWN}model" in self.__dict__:
            setattr(self._gaf_model, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._gaf_model, name)

    # Python looks these up on the class, so `__getattr__` does not see them.

    def __getitem__(self, index: Any) -> Any:
        return self._gaf_model[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._gaf_model[index] = value

    def __len__(self) -> int:
        return len(self._gaf_model)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._gaf_model)

    def __bool__(self) -> bool:
        return True  # not len(): a model without a length is true as well

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._gaf_model, memo), self._gaf_options)

    def __reduce__(self) -> tuple[Any, ...]:
        return (OptimizedModule, (self._gaf_model, self._gaf_options))

    def __repr__(self) -> str:
        return f"OptimizedModule({self._gaf_model!r})"
