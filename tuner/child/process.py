"""The child process in which candidates run: maps operands, loads a kernel, checks it, times it.

Anything may happen to it: a candidate may crash it, hang it or scribble over it. It therefore holds
nothing that cannot be had again, and says which stage it enters before it enters it.
"""

from __future__ import annotations

import math
import os
import resource
import socket
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.loopnest import BufferRole
from kernel_gen.records import Failure, Measurement, Protocol, Stage
from kernel_gen.runtime.kernel import Call, LoadedKernel
from kernel_gen.runtime.timer import Timer
from tuner.child import protocol
from tuner.child.checked_run import CheckedRun
from tuner.child.messages import (
    CheckSet,
    Done,
    OpenCheck,
    Reached,
    Report,
    RunKernel,
    RunOnNpu,
    RunSimulated,
)
from tuner.child.outputs import OutputBuffer
from tuner.child.shared_memory import map_arrays

_COLD_START_US = 2000.0  # threads starting, pages and caches filling


def serve(sock: socket.socket) -> None:
    """Answer requests until the other side closes the socket."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection = Connection(os.dup(sock.fileno()))
    checks: dict[str, CheckedRun] = {}

    def report(stage: Stage) -> None:
        connection.send(Reached(stage))

    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):
            return
        if isinstance(request, OpenCheck):
            _, descriptors, _, _ = socket.recv_fds(sock, 1, 1)
            checks[request.key] = _open(request, descriptors[0])
        elif isinstance(request, RunKernel):
            connection.send(Done(_run_kernel(request, checks[request.key], report)))
        elif isinstance(request, RunSimulated):
            connection.send(Done(_run_simulated(request, checks[request.key], report)))
        elif isinstance(request, RunOnNpu):
            from tuner.child.npu_trial import run_on_npu  # not for those who measure CPUs

            connection.send(Done(run_on_npu(request, checks[request.key], report)))
        else:
            connection.send(Done(_perform(request, report)))


def _perform(request: Any, report: Report) -> object:
    """The request's own answer; an exception is a Failure, as the process can go on."""
    try:
        return request.perform(report)
    except Exception as error:  # noqa: BLE001 - whatever a program raises is its result
        where = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        return Failure(Stage.RUN, "program-error", message[:1000])


def _open(request: OpenCheck, descriptor: int) -> CheckedRun:
    arrays = map_arrays(descriptor, request.block, writable=False)
    os.close(descriptor)
    outputs = [
        OutputBuffer(buffer.type)
        for buffer in request.nest.buffers
        if buffer.role is BufferRole.OUTPUT
    ]
    return CheckedRun(request.nest, tuple(arrays), request.sets, tuple(outputs))


def _run_kernel(request: RunKernel, check: CheckedRun, report: Report) -> Measurement | Failure:
    try:
        kernel = LoadedKernel(Path(request.path), request.source, check.nest)
        report(Stage.CHECK)
        calls: list[Call] = []
        for chosen in check.sets:  # the second one finds the pages of the scratch there
            first = calls[0] if calls else None
            calls.append(kernel.prepare(check.operands(chosen), request.threads, like=first))
        first_us = math.inf
        for chosen, call in zip(check.sets, calls, strict=True):
            checked = _check(kernel, call, check, chosen)
            if isinstance(checked, Failure):
                return checked
            first_us = min(first_us, checked)
            wrong = _check_in_place(kernel, request.threads, check, chosen)
            if wrong is not None:
                return wrong
        report(Stage.RUN)
        timer = _timer(Timer(Path(request.timer_path)), kernel, calls[0])
        if _is_hopeless(first_us, request.incumbent_us):
            once_more_us = timer(1)  # what else the machine did may have held the others up
            if _is_hopeless(once_more_us, request.incumbent_us):
                slow_us = min(first_us, once_more_us)
                return Measurement((slow_us,), Protocol(request.threads, 1, len(calls), "warm"))
        return protocol.measure(timer, request.threads, request.limits, request.incumbent_us)
    except Unavailable as error:
        return Failure(Stage.LOAD, "load-failed", str(error)[:500])
    except InvalidInput as error:
        return Failure(Stage.LOAD, "operand-mismatch", str(error)[:500])


def _run_simulated(
    request: RunSimulated, check: CheckedRun, report: Report
) -> Measurement | Failure:
    """The simulated time of a kernel that broke no rule and gave the right results, or that is too
    slow for anyone to want it: to run it with data takes many times longer than to time it."""
    from kernel_gen.runtime.ascend.simulated import SimulatedKernel, simulated_time

    try:
        kernel = SimulatedKernel(request.path, request.source, check.nest, request.target)
    except Unavailable as error:
        return Failure(Stage.LOAD, "load-failed", str(error)[:500])
    report(Stage.CHECK)
    if request.limit_us is not None:
        timed = kernel.timed(check.memory(check.sets[0]))
        measured = None if timed.failures else simulated_time(timed, request.target)
        if measured is not None and measured.median_us > request.limit_us:
            return measured
    found: Measurement | None = None
    for chosen in check.sets:
        result = kernel.run(check.memory(chosen), timing=found is None)
        if result.failures:
            broken = result.failures[0]
            return Failure(Stage.CHECK, broken.code, str(broken)[:500])
        wrong = check.wrong_output(chosen)
        if wrong is not None:
            return wrong
        found = found or simulated_time(result, request.target)
    assert found is not None
    return found


def _timer(loop: Timer, kernel: LoadedKernel, call: Call) -> protocol.Timer:
    """Microseconds of a number of calls; raises InvalidInput if one returns a status."""

    def time_us(calls: int) -> float:
        nanoseconds = loop.time_ns(kernel, call, calls)
        if nanoseconds < 0:
            raise InvalidInput(f"the kernel returned {-nanoseconds} while it was timed")
        return nanoseconds / 1000

    return time_us


def _is_hopeless(call_us: float, incumbent_us: float | None) -> bool:
    """Whether a call was so slow that even as a cold first one it leaves no hope."""
    return incumbent_us is not None and call_us > 5 * incumbent_us + _COLD_START_US


def _check_in_place(
    kernel: LoadedKernel, threads: int, check: CheckedRun, chosen: CheckSet
) -> Failure | None:
    """What is wrong where outputs are written over the inputs that they may replace."""
    pairs = kernel.source.in_place
    if not pairs:
        return None
    for output in check.outputs:
        output.poison()
    status = kernel.run(check.over_inputs(chosen, pairs), threads)
    if status:
        return Failure(Stage.CHECK, "kernel-status", f"the kernel returned {status} in place")
    return check.wrong_output(chosen)


def _check(
    kernel: LoadedKernel, call: Call, check: CheckedRun, chosen: CheckSet
) -> Failure | float:
    """Microseconds of a call that gave the right results; else what is wrong."""
    for output in check.outputs:
        output.poison()
    start = time.perf_counter_ns()
    status = kernel.call(call)
    took_us = (time.perf_counter_ns() - start) / 1000
    if status:
        return Failure(Stage.CHECK, "kernel-status", f"the kernel returned {status}")
    return check.wrong_output(chosen) or took_us
