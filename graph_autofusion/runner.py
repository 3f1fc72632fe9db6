"""`Runner`: chooses for each call between a plan, packing weights again, and the framework."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from graph_autofusion.gate import Gate
from graph_autofusion.guards import (
    CACHED,
    are_weights_cached,
    describe_call,
    framework_reason,
    shares_written_storage,
)
from graph_autofusion.model_guard import ModelGuard, hooks_reason
from graph_autofusion.notices import Notices
from graph_autofusion.options import Options
from graph_autofusion.program import Program, Ready
from graph_autofusion.programs import Programs
from graph_autofusion.report import fallback_report
from graph_autofusion.resolution import PlanSource
from kernel_gen.errors import GafError, InvalidInput, InvalidValues
from kernel_gen.frontend import Captured

log = logging.getLogger("graph_autofusion")

# CPython's dictionary behind os.environ: a look at it costs a twentieth of os.environ.get.
_ENVIRONMENT: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_DISABLE = os.environ.encodekey("GAF_DISABLE") if _ENVIRONMENT is not os.environ else "GAF_DISABLE"


def is_disabled() -> bool:
    """Whether GAF_DISABLE=1 turns everything off."""
    return _DISABLE in _ENVIRONMENT and os.environ.get("GAF_DISABLE") == "1"


def _without_program(reason: str) -> Program:
    """Stands for a call that no program was made of."""
    return Program(fallback_report(reason), Ready(ModelGuard(torch.nn.Module())))


class Runner:
    """The programs of one model. Thread-safe: a call sees a program's `Ready` whole."""

    def __init__(
        self, model: torch.nn.Module, options: Options, source: PlanSource | None = None
    ) -> None:
        self.model: Callable[..., Any] = model
        self.module = model
        self.options = options
        self.last: Program | None = None
        self._latest: Program | None = None  # whose call was last: tried first
        self._gate = Gate()
        self._notices = Notices()
        self.programs = Programs(model, options, self._gate, self._notices, source)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The model's result."""
        # Not is_compiling(): that flag is also set while another thread exports a model.
        if torch.compiler.is_dynamo_compiling():
            return self.model(*args, **kwargs)
        latest = self._latest
        if latest is not None and not kwargs and not is_disabled():
            ready = latest.ready
            if ready.accepts(args):
                self.last = latest
                return self._run(latest, ready, args, kwargs)
        return self._call_slowly(args, kwargs)

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_disabled():
            return self._run_model(args, kwargs)
        try:
            chosen = self._choose(args, kwargs)
        except GafError:
            raise
        except Exception as error:
            if self.options.strict:
                raise
            log.warning("choosing what runs a call failed", exc_info=True)
            chosen = f"internal failure: {type(error).__name__}: {error}"
        if isinstance(chosen, str):
            return self._framework(chosen, args, kwargs)
        return self._run(*chosen, args, kwargs)

    def _choose(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Ready] | str:
        """What stands in for the call, as it was checked, or why the framework must run it."""
        call = describe_call(args, kwargs)
        if call.signature is None:
            return call.reason
        program = self.programs.current(call.signature)
        if program is None:
            reason = hooks_reason(self.module) or framework_reason(
                self._is_trainable(), call.leaves
            )
            if reason:
                return reason
            program = self.programs.find(call, args, kwargs)
        ready = program.ready
        reason = framework_reason(ready.guard.needs_grad, call.leaves) if ready.bound else ""
        self.last = program
        if reason:
            return reason
        if program.poller is None and not kwargs:
            ready.remember(args)
            self._latest = program
        return program, ready

    def _run(
        self, program: Program, ready: Ready, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        bound, captured = ready.bound, ready.captured
        if bound is None or captured is None:
            result = self._run_model(args, kwargs)
            self._tell_failure(program)  # not where the model itself refuses the call
            return result
        inputs = args if captured.is_plain and not kwargs else captured.flatten(args, kwargs)
        if inputs is None:
            return self._framework("the call does not fit the captured program", args, kwargs)
        everything = () if ready.is_direct else self._all_inputs(captured, inputs)
        if captured.mutations and shares_written_storage(captured, everything):
            return self._framework("an input that is written shares storage", args, kwargs)
        try:
            outputs = bound(inputs, torch.get_num_threads())
        except GafError as error:
            return self._without_plan(program, error, args, kwargs)
        if ready.is_direct:
            return outputs[0]
        return captured.rebuild(everything, outputs)

    def _all_inputs(
        self, captured: Captured, inputs: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor]:
        """The call's tensors and the model's own."""
        self._gate.enter()
        try:
            return captured.bind(self.module, inputs)
        finally:
            self._gate.leave()

    def _without_plan(
        self, program: Program, error: GafError, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The model's result, or error, for a call that the plan failed in. Values that the model
        refuses as well say nothing against the plan."""
        if isinstance(error, InvalidValues):
            result = self.model(*args, **kwargs)
            self._give_up(program, error)
            self._notices.once(f"the plan failed: {error}")
            return result
        self._give_up(program, error)
        return self._framework(f"the plan failed: {error}", args, kwargs)

    def _give_up(self, program: Program, error: GafError) -> None:
        """A plan failed in a run: the model runs from now on."""
        if self.options.strict:
            raise error
        program.ready = Ready(ModelGuard(self.module))
        program.report = replace(program.report, cache="fallback", reason=str(error))

    def _framework(self, reason: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.last is None:
            self.last = _without_program(reason)
        self._notices.once(reason)
        return self._run_model(args, kwargs)

    def _tell_failure(self, program: Program) -> None:
        if program.failures:
            self._notices.once(program.report.reason)

    def _run_model(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._gate.enter()
        try:
            return self.model(*args, **kwargs)
        finally:
            self._gate.leave()

    def _is_trainable(self) -> bool:
        return any(parameter.requires_grad for parameter in self.module.parameters())

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Finds or tunes the plan for such a call without running it. Raises InvalidInput where the
        model itself does not take it."""
        if is_disabled():
            return
        call = describe_call(args, kwargs)
        reason = call.reason or hooks_reason(self.module)
        reason = reason or (CACHED if are_weights_cached() else "")
        if not reason:
            self.last = self.programs.find(call, args, kwargs, is_example=True)
            self._tell_failure(self.last)
        elif self.options.strict:
            raise InvalidInput(reason)
        else:
            if call.reason:
                self.programs.require_run(args, kwargs)
            self.last = _without_program(reason)
            self._notices.once(reason)

    def refresh(self) -> None:
        """Packs all weights again."""
        self.programs.refresh()
