"""`Runner`: chooses for each call between a plan, packing weights again, and the framework."""

from __future__ import annotations

import os
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from graph_autofusion.closure import adopt
from graph_autofusion.gate import Gate
from graph_autofusion.guards import (
    Call,
    describe_call,
    framework_reason,
    shares_written_storage,
)
from graph_autofusion.model_guard import ModelGuard, ModelState, hooks_reason
from graph_autofusion.options import OnMiss, Options
from graph_autofusion.poller import Poller
from graph_autofusion.program import Program, Ready
from graph_autofusion.report import fallback_report, report_of
from graph_autofusion.resolution import Accepts, PlanSource, Resolution
from kernel_gen.errors import GafError, InvalidInput, InvalidValues
from kernel_gen.frontend import Captured, capture
from kernel_gen.ir.target import DeviceKind
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import TorchPlan

_MAX_PROGRAMS = 64
_TIMED_CALLS = 3
# CPython's dictionary behind os.environ: a look at it costs a twentieth of os.environ.get.
_ENVIRONMENT: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_DISABLE = os.environ.encodekey("GAF_DISABLE") if _ENVIRONMENT is not os.environ else "GAF_DISABLE"


class GafWarning(UserWarning):
    """A program runs in the framework although a plan was asked for; the message says why."""


def is_disabled() -> bool:
    """Whether GAF_DISABLE=1 turns everything off."""
    return _DISABLE in _ENVIRONMENT and os.environ.get("GAF_DISABLE") == "1"


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
        self._programs: dict[Hashable, Program] = {}
        self._source = source
        self._lock = threading.RLock()
        self._gate = Gate()
        self._warned: set[str] = set()

    # Calling

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
        call = describe_call(args, kwargs)
        if call.signature is None:
            return self._framework(call.reason, args, kwargs)
        program = self._programs.get(call.signature)
        if program is None or not self._is_current(program):
            reason = hooks_reason(self.module) or framework_reason(
                self._is_trainable(), call.leaves
            )
            if reason:
                return self._framework(reason, args, kwargs)
            program = self._program(call, args, kwargs)
        ready = program.ready
        reason = framework_reason(ready.guard.needs_grad, call.leaves) if ready.bound else ""
        self.last = program
        if reason:
            return self._framework(reason, args, kwargs)
        if program.poller is None and not kwargs:
            ready.remember(args)
            self._latest = program
        return self._run(program, ready, args, kwargs)

    def _run(
        self, program: Program, ready: Ready, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        bound, captured = ready.bound, ready.captured
        if bound is None or captured is None:
            return self._run_model(args, kwargs)
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
            self._warn_once(f"the plan failed: {error}", 5)
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
            self.last = Program(fallback_report(reason), Ready(ModelGuard(self.module)))
        self._warn_once(reason, 5)
        return self._run_model(args, kwargs)

    def _run_model(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._gate.enter()
        try:
            return self.model(*args, **kwargs)
        finally:
            self._gate.leave()

    def _warn_once(self, reason: str, level: int) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(f"running in the framework: {reason}", GafWarning, stacklevel=level)

    def _is_trainable(self) -> bool:
        return any(parameter.requires_grad for parameter in self.module.parameters())

    # Programs

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Finds or tunes the plan for such a call without running it."""
        if is_disabled():
            return
        call = describe_call(args, kwargs)
        reason = call.reason or hooks_reason(self.module)
        if not reason:
            self.last = self._program(call, args, kwargs)
        elif self.options.strict:
            raise InvalidInput(reason)
        else:
            self.last = Program(fallback_report(reason), Ready(ModelGuard(self.module)))
            self._warn_once(reason, 4)

    def refresh(self) -> None:
        """Packs all weights again."""
        with self._lock:
            for signature, program in list(self._programs.items()):
                if self._bind(program):
                    del self._programs[signature]

    def _is_current(self, program: Program) -> bool:
        """Whether the program still stands for the model; packs written weights again."""
        if program.is_hopeless:
            return True
        state = program.ready.guard.check()
        if state is ModelState.WRITTEN:
            with self._lock:
                if program.ready.guard.check() is ModelState.WRITTEN and self._bind(program):
                    return False
        elif state is ModelState.CHANGED:
            return False
        if program.poller is not None:
            self._adopt(program)
        return True

    def _adopt(self, program: Program) -> None:
        """Swaps in the plan of a pending program, if it has come."""
        with self._lock:
            found = None if program.poller is None else program.poller.poll()
            if found is not None:
                program.poller = None
                self._install(program, found)

    def _program(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        with self._lock:
            known = self._programs.get(call.signature)
            if known is not None and known.ready.guard.check() is ModelState.SAME:
                return known
            if len(self._programs) >= _MAX_PROGRAMS:
                self._programs.clear()
            program = self._prepare(args, kwargs)
            if program.failures and known is not None:
                program.failures += known.failures
            self._programs[call.signature] = program
            return program

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        program = Program(fallback_report("preparing"), Ready(ModelGuard(self.module)))
        try:
            program.captured = captured = self._capture(args, kwargs)
            program.ready = Ready(ModelGuard(self.module))
            source = self._source = self._source or _resolver(self.options)
            accepts = self._accepts(captured, args, kwargs)
            found = source.resolve(captured.graph, accepts)
            self._install(program, found)
            if found.cache == "pending":
                graph = captured.graph
                program.poller = Poller(lambda: source.follow(found.job, graph, _always))
        except (GafError, OSError, RuntimeError) as error:
            if self.options.strict or self.options.on_miss is OnMiss.ERROR:
                raise
            program.failures = 1
            program.report = fallback_report(f"{type(error).__name__}: {error}")
            self._warn_once(program.report.reason, 6)
        return program

    def _capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
        """The program; raises InvalidInput if running the model changes its own attributes."""
        adopt(self.module)
        for _ in range(2):  # the first run may fill caches
            before = ModelGuard(self.module)
            self._gate.close()
            try:
                with torch.no_grad():
                    captured = capture(self.module, args, example_kwargs=kwargs)
            finally:
                self._gate.open()
            if before.check() is ModelState.SAME:
                return captured
        raise InvalidInput(
            f"each call of {type(self.module).__name__} changes its attributes or globals, "
            "which a plan would not do"
        )

    def _accepts(
        self, captured: Captured, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Accepts:
        """Times a compatible plan once against the model, on the tensors of this very call."""

        def accepts(plan: Plan) -> bool:
            inputs = captured.flatten(args, kwargs)
            if captured.mutations or inputs is None:
                return False  # a trial run would write to the user's tensors
            bound = self._loaded(plan).bind(list(captured.constants(self.module).values()))
            with torch.no_grad():
                ours = _median_seconds(lambda: bound(inputs, torch.get_num_threads()))
                return ours < _median_seconds(lambda: self.model(*args, **kwargs))

        return accepts

    def _loaded(self, plan: Plan) -> TorchPlan:
        """The plan in this process, on the NPU of the options if it is for one."""
        if plan.target.kind is not DeviceKind.ASCEND:
            return TorchPlan(plan)
        from kernel_gen.runtime.device_names import npu_number  # loads the NPU's generator

        return TorchPlan(plan, npu_number(self.options.device) or 0)

    def _install(self, program: Program, found: Resolution) -> None:
        """Makes the program run the plan of `found`, if it holds one that is worth it."""
        plan = found.plan
        if plan is None:
            program.report = fallback_report(found.reason, cache=found.cache)
            return
        report = report_of(plan, found.cache, tuned_now=found.cache == "tuned")
        program.plan, program.report = plan, report
        if _is_loss(plan):
            program.report = replace(
                report, reason="the plan is no gain over the framework: the model runs itself"
            )
        elif reason := self._bind(program):
            raise InvalidInput(f"the plan does not fit the model's weights: {reason}")

    def _bind(self, program: Program) -> str:
        """Packs the weights as they are now; if the model no longer fits the plan, says why."""
        captured, plan = program.captured, program.plan
        if plan is None or captured is None or _is_loss(plan):
            program.ready = Ready(ModelGuard(self.module))
            return ""
        try:
            constants = list(captured.constants(self.module).values())
            guard = ModelGuard(self.module, constants)  # before packing: later writes are seen
            bound = self._loaded(plan).bind(constants)
        except InvalidInput as error:
            return str(error)
        guard.watch_only(bound.snapshots)
        program.ready = Ready(guard, captured, bound)
        return ""


def _is_loss(plan: Plan) -> bool:
    """Whether the model itself is faster: the plan fuses nothing, or was measured to be slower."""
    summary = plan.summary
    slower = summary.measured_us > summary.baseline_us
    return not summary.improved and (slower or not plan.kernels)


def _always(plan: Plan) -> bool:
    return True


def _resolver(options: Options) -> PlanSource:
    from graph_autofusion.resolver import Resolver  # cryptography and the REST client

    return Resolver(options)


def _median_seconds(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(_TIMED_CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
