"""What a child does with torch: parts by the framework, whole plans, the baseline.

The baseline is the captured program run by torch as a user's eager call would run it: same
threads, no gradients, fresh outputs.
"""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gen.errors import GafError
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.fusion.write_back import written_by_torch
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.types import static_shape
from kernel_gen.records import Failure, Measurement, Stage
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import TorchPlan
from tuner.checks.compare import mismatch, program_tolerance, value_scale
from tuner.checks.domains import value_domains
from tuner.checks.float64 import is_no_worse
from tuner.checks.operands import graph_operands
from tuner.child import protocol
from tuner.child.checked_run import wrong_result
from tuner.child.exact_run import exact_results
from tuner.child.protocol import FRAMEWORK_ERROR, Limits
from tuner.child.rounds import rounds, undisturbed

Array = NDArray[Any]
Call = Callable[[], object]
_DRAWS = 0  # seed of what the program draws itself: the baseline and its plans draw the same
_EXACT_SECONDS = 5.0  # of a run in float64, where results differ
_DISCRETE_SHARE = 1e-3  # discrete elements that may differ between two orders of rounding
_REFUSALS = (RuntimeError, ValueError, IndexError, TypeError)  # what torch says of operands


def time_graph(graph: Graph, threads: int, limits: Limits) -> Measurement | Failure:
    """Time of one call of the graph as torch runs it, by one call of the library's if it can."""
    torch.set_num_threads(threads)
    program = TorchProgram(graph, fused=True)
    try:
        inputs, _ = _accepted(graph, program)
    except _REFUSALS as error:
        return Failure(Stage.RUN, FRAMEWORK_ERROR, str(error)[:500])
    timer = _timer(lambda: program(*inputs))

    def take(count: int) -> list[Measurement]:
        torch.set_num_threads(count)
        return [protocol.measure(timer, count, limits)]

    with torch.no_grad():
        return undisturbed(take, threads)[0]


def _accepted(
    graph: Graph, program: TorchProgram
) -> tuple[list[torch.Tensor], Sequence[torch.Tensor]]:
    """Inputs that the program runs on, and its results: ordinary values, or tame ones where some op
    refuses those. Raises what torch says of the ordinary ones where it takes neither."""

    def attempt(*, tame: bool) -> tuple[list[torch.Tensor], Sequence[torch.Tensor]]:
        inputs = _tensors(graph, tame=tame)
        torch.manual_seed(_DRAWS)
        return inputs, program(*map(_copy, inputs))

    try:
        return attempt(tame=False)
    except _REFUSALS:
        with contextlib.suppress(*_REFUSALS):
            return attempt(tame=True)
        raise


def check_plan(
    graph: Graph, plan: Plan, threads: int, report: Callable[[Stage], None], npu: int = 0
) -> Failure | None:
    """Why the plan's results are not the baseline's, if they are not."""
    torch.set_num_threads(threads)
    bench = _bench(graph)
    report(Stage.CHECK)
    try:
        with torch.no_grad():
            call = _plan_call(plan, bench.inputs(), npu)
            torch.manual_seed(_DRAWS)
            found = call()
    except (GafError, RuntimeError) as error:
        return Failure(Stage.CHECK, "plan-error", str(error)[:500])
    assert isinstance(found, list | tuple)
    for position, (actual, expected) in enumerate(zip(found, bench.expected, strict=True)):
        dtype = graph.type_of(graph.outputs[position].value).dtype
        found_array = _numpy(actual)
        problem = _difference(found_array, expected, dtype)
        if problem is not None and not bench.excuses(position, found_array):
            return wrong_result(position, problem)
    return None


def interleave(
    graph: Graph,
    plans: Sequence[Plan],
    threads: int,
    limits: Limits,
    seconds: tuple[float, float],
) -> list[Measurement]:
    """Times of the baseline and of each plan, in rounds for `seconds`: the usual, and the most that
    the least number of rounds may take. Half the usual ones more where they were disturbed."""
    torch.set_num_threads(threads)
    bench = _bench(graph)
    program = TorchProgram(graph, in_place=written_by_torch(graph))
    with torch.no_grad():
        inputs = bench.inputs()
        calls: list[Call] = [lambda: program(*inputs)]
        calls += [_plan_call(plan, inputs) for plan in plans]
        timers = [_timer(call) for call in calls]

        def take(count: int) -> list[Measurement]:
            torch.set_num_threads(count)
            half = seconds[0] / 2
            return rounds(timers, count, limits, seconds if count == threads else (half, half))

        return undisturbed(take, threads)


class _Bench:
    """Inputs of a program and what the baseline makes of them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._inputs, results = _accepted(graph, TorchProgram(graph))
        self.expected = [_numpy(tensor).copy() for tensor in results]

    def inputs(self) -> list[torch.Tensor]:
        """Fresh copies, as calls may write their inputs."""
        return [_copy(tensor) for tensor in self._inputs]

    def excuses(self, position: int, actual: Array) -> bool:
        """Whether a result that is not eager's is as right as that, by float64; False where the
        program cannot be run in it."""
        dtype = self._graph.type_of(self._graph.outputs[position].value).dtype
        expected = self.expected[position]
        if not dtype.is_float or actual.shape != expected.shape or self._exact is None:
            return False
        return is_no_worse(actual, expected, self._exact[position], dtype)

    @cached_property
    def _exact(self) -> list[Array] | None:
        found = exact_results(self._graph, self.inputs(), _EXACT_SECONDS)
        return None if found is None else [_numpy(tensor) for tensor in found]


@lru_cache(maxsize=1)
def _bench(graph: Graph) -> _Bench:
    return _Bench(graph)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    copy = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    return copy.copy_(tensor)


def _plan_call(plan: Plan, inputs: Sequence[torch.Tensor], npu: int = 0) -> Call:
    kinds = [given.kind for given in plan.program.inputs]
    pairs = list(zip(kinds, inputs, strict=True))
    users = [tensor for kind, tensor in pairs if kind is InputKind.USER]
    constants = [tensor for kind, tensor in pairs if kind is not InputKind.USER]
    bound = TorchPlan(plan, npu).bind(constants)
    return lambda: bound(users, torch.get_num_threads())


def _timer(call: Call) -> protocol.Timer:
    def time_us(calls: int) -> float:
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        return (time.perf_counter_ns() - start) / 1000

    return time_us


def _tensors(graph: Graph, *, tame: bool = False) -> list[torch.Tensor]:
    """Random inputs within the domains, with the strides that the graph was captured with."""
    rng = np.random.default_rng(zlib.crc32(graph.digest.encode()))
    arrays = graph_operands(graph, value_domains(graph), rng, tame=tame)
    return [
        _strided(array, graph, given.value)
        for array, given in zip(arrays, graph.inputs, strict=True)
    ]


def _strided(array: Array, graph: Graph, value: int) -> torch.Tensor:
    kind = graph.type_of(value)
    plain = _from_numpy(array)
    tensor = torch.empty_strided(static_shape(kind.shape), kind.element_strides, dtype=plain.dtype)
    return tensor.copy_(plain)


def _from_numpy(array: Array) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _numpy(tensor: torch.Tensor) -> Array:
    """Values for comparison; bfloat16 as float32."""
    plain = tensor.detach()
    return plain.float().numpy() if plain.dtype is torch.bfloat16 else plain.numpy()


def _difference(actual: Array, expected: Array, dtype: DType) -> str | None:
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if not dtype.is_float:
        wrong = int(np.count_nonzero(actual != expected))
        share = f"{wrong} of {actual.size} elements differ"
        return share if wrong > max(1.0, _DISCRETE_SHARE * actual.size) else None
    return mismatch(actual, expected, program_tolerance(dtype, value_scale(expected)))
