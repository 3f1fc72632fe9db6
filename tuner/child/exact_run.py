"""Runs a program in float64 by torch, as far as that is cheap enough."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from kernel_gen.frontend.torch_run import TorchProgram, constant_tensor, run
from kernel_gen.ir.graph import Graph, Output
from tuner.checks.float64 import decisions, held_bytes, in_float64, last_reads

_MEMORY_SHARE = 0.5  # of what is free


def exact_results(
    graph: Graph, inputs: Sequence[torch.Tensor], seconds: float
) -> list[torch.Tensor] | None:
    """The results of a static program on `inputs` (all of them, in order) without rounding, its
    decisions taken as eager takes them.

    None where that takes more than about `seconds` (it ends after the op that passes them) or half
    of the memory that is free, and where a node is the framework's or has no float64 there.
    """
    wide = in_float64(graph)
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if wide is None or held_bytes(wide) > _MEMORY_SHARE * free:
        return None
    wanted = tuple(Output(value) for value in decisions(graph))
    with torch.no_grad():
        decided = TorchProgram(replace(graph, outputs=wanted))(*inputs)
        try:
            return _run(wide, [_wide(tensor) for tensor in (*inputs, *decided)], seconds)
        except RuntimeError:  # the library has no float64 for some op
            return None


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _run(
    program: Graph, inputs: Sequence[torch.Tensor], seconds: float
) -> list[torch.Tensor] | None:
    env = {c.value: constant_tensor(c, program.type_of(c.value)) for c in program.constants}
    env.update({given.value: t for given, t in zip(program.inputs, inputs, strict=True)})
    last, end = last_reads(program), time.monotonic() + seconds
    for index, node in enumerate(program.nodes):
        if time.monotonic() > end:
            return None
        run(program, (index,), env)
        for value in {*node.inputs, *node.outputs}:
            if last.get(value, index) == index:
                env.pop(value, None)
    return [env[output.value] for output in program.outputs]
