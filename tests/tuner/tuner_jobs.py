"""Small programs and devices for tests of whole jobs."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.codegen.source import KernelSource
from kernel_gen.codegen.template import Template
from kernel_gen.errors import Refusal
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import TensorType
from kernel_gen.records import Budget, Failure, JobRequest, Measurement, Protocol
from kernel_gen.runtime.key import plan_key
from kernel_gen.schedule.schedule import Point, Schedule, Space
from tuner.replay import Lookup
from tuner.session import Assignment


def add_relu_graph(elems: int = 4096) -> Graph:
    """relu(x + y) · y: three ops that one kernel can hold."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (elems,)))
    y = b.input(TensorType(DType.F32, (elems,)))
    b.output(b.op("mul", b.op("relu", b.op("add", x, y)), y))
    return b.build()


def assignment(
    target: Target, seconds: float = 60.0, trials: int | None = None, graph: Graph | None = None
) -> Assignment:
    subject = graph or add_relu_graph()
    request = JobRequest(subject.digest, "cpu", Budget(seconds, trials))
    return Assignment(subject, plan_key(subject, target), request)


def measurement(us: float) -> Measurement:
    return Measurement((us,), Protocol(2, 1, 1, "warm"))


def steady_times(kernel_us: float = 5.0, framework_us: float = 20.0) -> Lookup:
    """Every kernel and every framework part takes as long as the others."""

    def lookup(group: str, template: str, point: object) -> Measurement | Failure | None:
        return measurement(framework_us if template in ("framework", "baseline") else kernel_us)

    return lookup


class Sabotaged:
    """A template whose generated text is changed by `change` (symbol, text) -> text."""

    def __init__(self, inner: Template, change: Callable[[str, str], str]) -> None:
        self._inner, self._change = inner, change

    @property
    def name(self) -> str:
        return self._inner.name

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        return self._inner.refuse(nest, target)

    def space(self, nest: LoopNest, target: Target) -> Space:
        return self._inner.space(nest, target)

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        return self._inner.schedule(nest, target, point)

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        source = self._inner.generate(nest, target, schedule, symbol)
        files = tuple((name, self._change(symbol, text)) for name, text in source.files)
        return KernelSource(
            source.entry, files, source.packs, source.scratch_bytes, source.shared_bytes
        )


def pointwise(target: Target) -> Template:
    return next(t for t in templates(target) if t.name == "pointwise")
