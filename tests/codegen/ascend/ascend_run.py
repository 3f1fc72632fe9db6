"""Kernels for the NPU built and run on the simulator, and compared with the reference."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernel_gen.ascend.chips import load_chip
from kernel_gen.ascend.sim import SimResult, Simulator, build
from kernel_gen.codegen.ascend.launch import Launch, Tiler, first_schedule
from kernel_gen.codegen.ascend.registry import templates
from kernel_gen.codegen.ascend.target import npu_target
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.arrays import constant_array, numpy_dtype
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import BufferRole, LoopNest
from kernel_gen.ir.types import Dim, TensorType
from kernel_gen.schedule.schedule import Schedule
from tests.strategies import assert_outputs_match

CHIP = "910b3"
SYMBOL = "fused_kernel"


def lowered(graph: Graph) -> Lowered | Refusal:
    """All nodes of a graph as one nest."""
    return lower(graph, make_group(graph, range(len(graph.nodes))))


def known(extent: Dim, symbols: Mapping[str, int]) -> int:
    return extent if isinstance(extent, int) else symbols[extent.name]


def storage(kind: TensorType, symbols: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Memory of an output, flat, and the tensor in it."""
    shape = [known(d, symbols) for d in kind.shape]
    if kind.strides is None:
        flat = np.zeros(int(np.prod(shape)), numpy_dtype(kind.dtype))
        return flat, flat.reshape(shape)
    last = sum((d - 1) * s for d, s in zip(shape, kind.strides, strict=True))
    flat = np.zeros(1 + last if all(shape) else 0, numpy_dtype(kind.dtype))
    strides = [s * flat.itemsize for s in kind.strides]
    return flat, np.lib.stride_tricks.as_strided(flat, shape, strides)


def memory(array: np.ndarray, kind: TensorType) -> np.ndarray:
    """An operand as it lies in memory, in its type's strides."""
    if kind.strides is None:
        return np.ascontiguousarray(array)
    flat, view = storage(kind, {})
    view[...] = array
    return flat


def generated(nest: LoopNest, schedule: Schedule, target: str, symbol: str) -> KernelSource:
    """The sources of a schedule's kernel."""
    chip = npu_target(target)
    template = next(t for t in templates(chip) if t.name == schedule.template)
    return template.generate(nest, chip, schedule, symbol)


@dataclass(slots=True)
class AscendKernel:
    """A kernel of a nest, built once, run for any dimensions. `built` is a library that holds it
    and its tiling function already, and its symbol there."""

    nest: LoopNest
    schedule: Schedule
    workdir: Path
    target: str = CHIP
    built: tuple[Path, str] | None = None
    tiler: Tiler = field(init=False)
    simulator: Simulator = field(init=False)
    last: SimResult | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.built is not None:
            library, symbol = self.built
            self.tiler = Tiler(ctypes.CDLL(str(library)), symbol)
        else:
            symbol = SYMBOL
            source = generated(self.nest, self.schedule, self.target, symbol)
            library = build(dict(source.files[:3]), self.workdir)
            self.tiler = Tiler(ctypes.CDLL(str(library)), symbol)
        self.simulator = Simulator(library, symbol, load_chip(self.target))

    def run(
        self, operands: Sequence[np.ndarray], symbols: Mapping[str, int] | None = None
    ) -> list[np.ndarray]:
        """Outputs of a checked run; fails the test where a rule is broken."""
        symbols = symbols or {}
        pairs = [storage(b.type, symbols) for b in self.nest.buffers
                 if b.role is BufferRole.OUTPUT]  # fmt: skip
        kinds = [b.type for b in self.nest.buffers if b.role is not BufferRole.OUTPUT]
        held = [memory(a, kind) for a, kind in zip(operands, kinds, strict=True)]
        tiling, blocks, work = self.tiler([symbols[s] for s in sorted(symbols)])
        self.last = self.simulator.run(
            held, [flat for flat, _ in pairs], tiling=tiling, blocks=blocks, workspace_bytes=work
        )
        assert not self.last.failures, "\n".join(map(str, self.last.failures[:5]))
        return [view for _, view in pairs]


def schedule_of(nest: LoopNest, **choices: int | str) -> Schedule | Refusal:
    """The first guess for a nest, with some choices made otherwise."""
    target = npu_target(CHIP)
    first = first_schedule(nest, target)
    if isinstance(first, Refusal) or not choices:
        return first
    template = next(t for t in templates(target) if t.name == first.template)
    point = dict(template.space(nest, target).seeds[0]) | choices
    return template.schedule(nest, target, point)


def check_graph(
    graph: Graph, inputs: Sequence[np.ndarray], workdir: Path, **choices: int | str
) -> Refusal | AscendKernel:
    """Runs a whole graph as one kernel and compares it with the reference."""
    made = lowered(graph)
    if isinstance(made, Refusal):
        return made
    schedule = schedule_of(made.nest, **choices)
    if isinstance(schedule, Refusal):
        return schedule
    kernel = AscendKernel(made.nest, schedule, workdir)
    compare(graph, inputs, made, kernel)
    return kernel


def compare(
    graph: Graph, inputs: Sequence[np.ndarray], made: Lowered, kernel: AscendKernel
) -> None:
    """Runs the kernel of a whole graph and compares its outputs with the reference."""
    values = {i.value: a for i, a in zip(graph.inputs, inputs, strict=True)}
    for constant in graph.constants:
        values[constant.value] = constant_array(constant, graph.type_of(constant.value))
    pairs = list(zip(made.operands, made.nest.buffers, strict=True))
    reads = [values[v] for v, b in pairs if b.role is not BufferRole.OUTPUT]
    writes = [v for v, b in pairs if b.role is BufferRole.OUTPUT]
    values.update(zip(writes, kernel.run(reads), strict=True))
    assert_outputs_match(graph, inputs, [values[o.value] for o in graph.outputs])


__all__ = [
    "AscendKernel", "Launch", "check_graph", "compare", "generated", "lowered", "memory",
    "schedule_of", "storage",
]  # fmt: skip
