"""`Programs`: captures a model's calls, finds their plans, and binds these to the weights."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

import torch

from graph_autofusion.closure import adopt
from graph_autofusion.collecting import collecting_later
from graph_autofusion.gate import Gate
from graph_autofusion.guards import Call
from graph_autofusion.model_guard import ModelGuard, ModelState
from graph_autofusion.native_attention import native_attention
from graph_autofusion.notices import Notices
from graph_autofusion.options import OnMiss, Options
from graph_autofusion.poller import Poller
from graph_autofusion.program import Program, Ready
from graph_autofusion.progress import waiting
from graph_autofusion.report import fallback_report, report_of, why_unused
from graph_autofusion.resolution import Accepts, PlanSource, Resolution
from kernel_gen.errors import GafError, InvalidInput
from kernel_gen.frontend import Captured, capture
from kernel_gen.ir.target import DeviceKind
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import TorchPlan

log = logging.getLogger("graph_autofusion")

_MAX_PROGRAMS = 64
_TIMED_CALLS = 3
_SHOWN_SECONDS = 1.0  # what takes longer shows that it goes on


class Programs:
    """The programs of one model, by the signature of their calls. Thread-safe."""

    def __init__(
        self,
        module: torch.nn.Module,
        options: Options,
        gate: Gate,
        notices: Notices,
        source: PlanSource | None = None,
    ) -> None:
        self.module = module
        self.options = options
        self.source = source
        self._gate = gate
        self._notices = notices
        self._known: dict[Hashable, Program] = {}
        self._lock = threading.RLock()

    def current(self, signature: Hashable) -> Program | None:
        """The program of such calls, if it still stands for the model; packs written weights."""
        program = self._known.get(signature)
        return program if program is not None and self._is_current(program) else None

    def find(
        self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_example: bool = False
    ) -> Program:
        """The program of the call, captured and with a plan if there is one to be had; its
        `failures` say that this failed, which the caller tells. Raises InvalidInput for an example
        that cannot be captured because the model does not take it."""
        with self._lock:
            known = self._known.get(call.signature)
            if known is not None and known.ready.guard.check() is ModelState.SAME:
                return known
            if len(self._known) >= _MAX_PROGRAMS:
                self._known.clear()
            program = self._prepare(args, kwargs, is_example)
            if program.failures and known is not None:
                program.failures += known.failures
            self._known[call.signature] = program
            return program

    def refresh(self) -> None:
        """Packs all weights again."""
        with self._lock:
            for signature, program in list(self._known.items()):
                if self._bind(program):
                    del self._known[signature]

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

    def require_run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Runs the model, and raises InvalidInput where it does not take such a call."""
        self._gate.enter()
        try:
            with torch.no_grad():
                self.module(*args, **kwargs)
        except Exception as error:
            raise InvalidInput(
                f"the model does not take these inputs: {type(error).__name__}: {error}"
            ) from error
        finally:
            self._gate.leave()

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any], is_example: bool) -> Program:
        program = Program(fallback_report("preparing"), Ready(ModelGuard(self.module)))
        try:
            with waiting("capturing the program", _SHOWN_SECONDS):
                program.captured = captured = self._capture(args, kwargs)
            program.ready = Ready(ModelGuard(self.module))
            source = self.source = self.source or _resolver(self.options)
            accepts = self._accepts(captured, args, kwargs)
            found = source.resolve(captured.graph, accepts)
            self._install(program, found)
            if found.cache == "pending":
                graph = captured.graph
                program.poller = Poller(lambda: source.follow(found.job, graph, _always))
        except Exception as error:  # nothing that fails here may break the caller's program
            if is_example and program.captured is None:
                self.require_run(args, kwargs)
            if self.options.strict or self.options.on_miss is OnMiss.ERROR:
                raise
            if not isinstance(error, GafError | OSError):
                log.warning("preparing a plan failed", exc_info=True)
            program.failures = 1
            program.report = fallback_report(f"{type(error).__name__}: {error}")
        return program

    def _capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
        """The program; raises InvalidInput if running the model changes its own attributes, or
        does what a capture does not see."""
        adopt(self.module)
        for _ in range(2):  # the first run may fill caches
            before = ModelGuard(self.module)
            self._gate.close()
            try:
                with torch.no_grad():
                    captured = capture(self.module, args, example_kwargs=kwargs)
                native = native_attention(self.module, captured, args, kwargs)
            finally:
                self._gate.open()
            if before.check() is ModelState.SAME:
                if native:
                    raise InvalidInput(native)
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
                ours = _least_seconds(lambda: bound(inputs, torch.get_num_threads()))
                return ours < _least_seconds(lambda: self.module(*args, **kwargs))

        return accepts

    def _loaded(self, plan: Plan) -> TorchPlan:
        """The plan in this process, on the NPU of the options if it is for one."""
        if plan.target.kind is not DeviceKind.ASCEND:
            return TorchPlan(plan)
        from kernel_gen.runtime.ascend.names import npu_number  # loads the NPU's generator

        return TorchPlan(plan, npu_number(self.options.device) or 0)

    def _install(self, program: Program, found: Resolution) -> None:
        """Makes the program run the plan of `found`, if it holds one that is worth it."""
        plan = found.plan
        if plan is None:
            program.report = fallback_report(found.reason, cache=found.cache)
            if found.cache == "fallback" and not found.is_asked_for:
                self._notices.once(found.reason)
            return
        tuned_now = found.cache == "tuned"
        report = report_of(plan, found.cache, tuned_now=tuned_now, note=found.reason)
        program.plan, program.report = plan, report
        if report.reason:
            if plan.is_unmeasured and tuned_now:
                self._notices.once(report.reason)
        elif reason := self._bind(program):
            raise InvalidInput(f"the plan does not fit the model's weights: {reason}")

    @collecting_later()
    def _bind(self, program: Program) -> str:
        """Packs the weights as they are now; if the model no longer fits the plan, says why."""
        captured, plan = program.captured, program.plan
        if plan is None or captured is None or why_unused(plan):
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


def _always(plan: Plan) -> bool:
    return True


@collecting_later()
def _resolver(options: Options) -> PlanSource:
    from graph_autofusion.resolver import Resolver  # cryptography and plans

    return Resolver(options)


def _least_seconds(call: Callable[[], object]) -> float:
    """What the call takes; other programs only add to it."""
    call()
    times = []
    for _ in range(_TIMED_CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
