"""Running a plan on torch tensors.

    TorchPlan(plan).bind(weights)(inputs, n_threads) -> results

Loading checks what the plan requires; binding packs weights and folds constant nodes; a call fills
a table of pointers and makes one C call per compiled segment. Results are fresh tensors over
recycled memory, views of inputs where eager returns such, and mutated inputs are written last.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.frontend.torch_run import run
from kernel_gen.ir.target import DeviceKind
from kernel_gen.runtime.hugepages import advise
from kernel_gen.runtime.layout import kernel_reads, user_inputs
from kernel_gen.runtime.native import Call, NativePlan, check
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.requires import sentence, this_process
from kernel_gen.runtime.torch_glue.constants import (
    BoundConstants,
    Environment,
    bind_constants,
    check_tensor,
    has_layout,
    with_layout,
)
from kernel_gen.runtime.torch_glue.pool import OutputPool
from kernel_gen.runtime.torch_glue.results import Results, mark_written
from kernel_gen.runtime.torch_glue.steps import (
    Compiled,
    Framework,
    dead_after,
    output_pools,
    read_as_tensors,
    steps_of,
)

if TYPE_CHECKING:
    from kernel_gen.runtime.ascend.npu import NpuPlan
    from kernel_gen.runtime.ascend.simulated import SimulatedPlan

    LoadedPlan = NativePlan | NpuPlan | SimulatedPlan

_IDLE_CONTEXTS = 16  # arenas kept for later calls; more calls at once allocate their own


class TorchPlan:
    """A plan loaded into this process, to be bound to any number of sets of constants."""

    def __init__(self, plan: Plan, npu: int = 0) -> None:
        """`npu` is where an NPU's plan runs. Raises Unavailable if the plan does not run here."""
        reason = sentence(plan.provenance, this_process())
        if reason:
            raise Unavailable(f"plan {plan.key}: {reason}")
        self.plan = plan
        self._native = _loaded(plan, npu)

    def bind(self, constants: Sequence[torch.Tensor]) -> BoundPlan:
        """The plan over `constants`: one tensor per non-user input of the program, in order.

        Tensors that kernels neither pack nor lay out anew are read in place in each call.
        """
        return BoundPlan(self.plan, self._native, bind_constants(self.plan, constants))


def _loaded(plan: Plan, npu: int) -> LoadedPlan | None:
    """The plan's code; modules of NPUs are not for those who run CPU plans."""
    if not plan.artifacts:
        return None
    if plan.target.kind is DeviceKind.CPU:
        return NativePlan(plan.artifacts[0])
    if plan.target.kind is DeviceKind.ASCEND_SIM:
        from kernel_gen.runtime.ascend.simulated import SimulatedPlan

        return SimulatedPlan(plan)
    from kernel_gen.runtime.ascend.npu import NpuPlan

    return NpuPlan(plan, npu)


class _Context:
    """What one call brings: a table of pointers, an arena, the C struct over both."""

    __slots__ = ("arena", "call", "n_threads", "reference", "values")

    def __init__(self, n_values: int) -> None:
        self.values = (ctypes.c_void_p * max(n_values, 1))()
        self.call = Call(size=ctypes.sizeof(Call), values=ctypes.addressof(self.values))
        self.reference = ctypes.byref(self.call)
        self.n_threads = 0
        self.arena: torch.Tensor | None = None

    def grow(self, native: LoadedPlan, n_threads: int) -> None:
        """Makes the arena large enough for `n_threads` threads; torch aligns it to 64 bytes."""
        needed = native.arena_bytes(n_threads)
        if self.arena is None or self.arena.numel() < needed:
            self.arena = torch.empty(needed, dtype=torch.uint8, device="cpu")
            self.call.arena = self.arena.data_ptr()
            advise(self.call.arena, needed)
        self.call.n_threads = self.n_threads = n_threads


class BoundPlan:
    """A plan with its constants. Calls from several threads at once are fine."""

    def __init__(self, plan: Plan, native: LoadedPlan | None, constants: BoundConstants) -> None:
        self.plan = plan
        self.snapshots = constants.snapshots
        self._constants = constants
        self._users = user_inputs(plan.program)
        self._native = native
        self._handle = self._create(native)
        read = {value for kernel in plan.kernels for value in kernel_reads(kernel)}
        self._reads = [(i, value) for i, value in enumerate(self._users) if value in read]
        pools = output_pools(plan)
        self._steps = steps_of(plan, read, constants.library, pools)
        self._dead = dead_after(plan)
        self._overwriting = frozenset(value for value, _ in plan.layout.overwrites)
        private = self._overwriting.union(plan.layout.buffers)
        self._results = Results(plan.program, constants.tensors, private)
        self._direct = self._direct_order(pools)
        named = read_as_tensors(plan)
        self._tensors = {v: t for v, t in constants.tensors.items() if v in named}
        self._contexts: list[_Context] = []

    def _create(self, native: LoadedPlan | None) -> Any:
        if native is None:
            return None
        addresses = [tensor.data_ptr() for tensor in self._constants.pointers]
        if not isinstance(native, NativePlan):
            return native.create(addresses)
        handle = native.create(addresses)
        # Not at exit: other threads may still be running the plan then.
        weakref.finalize(self, native.destroy, handle).atexit = False
        return handle

    def _direct_order(self, pools: dict[int, OutputPool]) -> list[tuple[int, OutputPool]] | None:
        """Outputs with their pools, if the plan is one C call that writes each output once."""
        values = [output.value for output in self.plan.program.outputs]
        one_call = len(self._steps) == 1 and isinstance(self._steps[0], Compiled)
        if not one_call or not self._results.all_fresh or sorted(values) != sorted(pools):
            return None
        return [(value, pools[value]) for value in values]

    def __call__(
        self, inputs: Sequence[torch.Tensor], n_threads: int, *, checked: bool = False
    ) -> list[torch.Tensor]:
        """Runs the plan on the user inputs; one tensor per output of the program, in order.

        An output that mutates an input is that input, written; one that aliases an input is a view
        of it. Shapes, dtypes and strides must be those the plan was captured with: `checked`
        verifies it (InvalidInput), else that is the caller's word.
        """
        if checked:
            self.check(inputs)
        try:
            context = self._contexts.pop()
        except IndexError:
            context = _Context(len(self.plan.program.values))
        if context.n_threads != n_threads and self._native is not None:
            context.grow(self._native, n_threads)
        try:
            values = context.values
            for position, value in self._reads:
                values[value] = inputs[position].data_ptr()
            if self._direct is not None:
                return self._run_direct(context)
            with torch.no_grad():
                return self._run(context, inputs)
        finally:
            if len(self._contexts) < _IDLE_CONTEXTS:
                self._contexts.append(context)

    def check(self, inputs: Sequence[torch.Tensor]) -> None:
        """Raises InvalidInput unless `inputs` are what the plan was captured with."""
        if len(inputs) != len(self._users):
            raise InvalidInput(f"the plan takes {len(self._users)} inputs, got {len(inputs)}")
        for position, (value, tensor) in enumerate(zip(self._users, inputs, strict=True)):
            type_ = self.plan.program.type_of(value)
            check_tensor(f"input {position}", tensor, type_)
            if not has_layout(tensor, type_):
                raise InvalidInput(
                    f"input {position}: expected strides {type_.element_strides}, "
                    f"got {tensor.stride()}"
                )

    def _run_direct(self, context: _Context) -> list[torch.Tensor]:
        values = context.values
        results = []
        for value, pool in self._direct or ():
            tensor = pool.take()
            values[value] = tensor.data_ptr()
            results.append(tensor)
        self._call(context, 0)
        return results

    def _run(self, context: _Context, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        env = self._tensors.copy()
        env.update(zip(self._users, inputs, strict=True))
        for step, dead in zip(self._steps, self._dead, strict=True):
            if isinstance(step, Compiled):
                self._run_compiled(step, context, env)
            else:
                self._run_framework(step, context, env)
            for value in dead:
                env.pop(value, None)  # one call for several nodes leaves out what is between them
        return self._results.collect(inputs, env)

    def _run_compiled(self, step: Compiled, context: _Context, env: Environment) -> None:
        for value, pool in step.takes:
            env[value] = tensor = pool.take()
            context.values[value] = tensor.data_ptr()
        for value, target in step.overwrites:
            env[value] = tensor = env[target]
            context.values[value] = tensor.data_ptr()
        self._call(context, step.number)
        for _, target in step.overwrites:
            mark_written(env[target])

    def _run_framework(self, step: Framework, context: _Context, env: Environment) -> None:
        call = step.call
        if call is None:
            run(self.plan.program, step.nodes, env, self._overwriting)
        else:
            env.update(call.results(*[env[value] for value in call.inputs]))
        for value, type_ in step.fetched:
            env[value] = tensor = with_layout(env[value], type_)
            context.values[value] = tensor.data_ptr()

    def _call(self, context: _Context, segment: int) -> None:
        context.call.segment = segment
        assert self._native is not None
        status = self._native.run(self._handle, context.reference)
        if status:
            check(status)
