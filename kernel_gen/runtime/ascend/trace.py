"""When each pipe of each core is busy while a plan runs on a simulated NPU, for Perfetto."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernel_gen.ascend.chips import load_chip
from kernel_gen.errors import InternalError, InvalidInput
from kernel_gen.ir.target import DeviceKind
from kernel_gen.runtime.arena import storage_bytes
from kernel_gen.runtime.ascend.simulated import load_kernels
from kernel_gen.runtime.plan import Plan

_MOST_CORES = 1000  # processes of one kernel in the trace: ids of the next one start beyond


def plan_trace(plan: Plan) -> dict[str, Any]:
    """The kernels of a plan one after another, in Chrome's trace format: a process per kernel and
    core, a thread per pipe, simulated microseconds. Operands are zero.

    Raises InvalidInput for a plan of another device, Unavailable where the plan does not run here.
    """
    if plan.target.kind is not DeviceKind.ASCEND_SIM:
        raise InvalidInput(f"a plan for {plan.target.key} has no trace: only simulated NPUs have")
    events: list[dict[str, Any]] = []
    start_us = 0.0
    for number, (kernel, loaded) in enumerate(zip(plan.kernels, load_kernels(plan), strict=True)):
        start_us += load_chip(plan.target.model).launch_us
        operands = [np.zeros(storage_bytes(b.type), np.uint8) for b in kernel.nest.buffers]
        result = loaded.run(operands, trace=True)
        if result.trace is None or result.failures:
            raise InternalError(f"kernel {kernel.source.entry}: no trace: {result.failures[:1]}")
        title = f"kernel {number}, {' + '.join(kernel.ops)}: "
        events += [
            _moved(event, number * _MOST_CORES, start_us, title)
            for event in result.trace["traceEvents"]
        ]
        start_us = round(start_us + result.latency_us, 3)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _moved(event: dict[str, Any], pid: int, start_us: float, title: str) -> dict[str, Any]:
    moved = event | {"pid": event["pid"] + pid}
    if "ts" in event:
        moved["ts"] = round(event["ts"] + start_us, 3)
    if event["name"] == "process_name":
        moved["args"] = {"name": title + event["args"]["name"]}
    return moved
