"""Looks for a kernel of a program that is wrong, and cuts the program down to what it needs.

    relu(layer_norm(x)) · w + b   ->   layer_norm(x)      if its kernel alone is wrong already

Every candidate group is built through every template that takes it, at its starting points and at
random ones, and checked as a search checks its candidates.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kernel_gen.codegen.template import Template
from kernel_gen.errors import InvalidInput, Refusal
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Budget, Failure, JobRequest, Stage
from tuner.checks.domains import value_domains
from tuner.child.messages import KernelTask
from tuner.devices.device import Device
from tuner.extract import Extraction
from tuner.prepare import prepare
from tuner.tasks import NestTask, Tasks

_WRONG = (Stage.BUILD, Stage.CHECK, Stage.RUN)
_BATCH = 8
_SYMBOL = "repro"
OnNest = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """A wrong kernel: the smallest program found that has it, and how it was generated."""

    graph: Graph
    ops: tuple[str, ...]
    task: KernelTask
    failure: Failure


@dataclass(frozen=True, slots=True)
class Searched:
    """What a look at a program saw: kernels tried, and the first that was wrong, if one was."""

    kernels: int
    finding: Finding | None


class Repro:
    """Searches programs for wrong kernels on a device. `points` are random points a template."""

    def __init__(
        self,
        device: Device,
        templates: Sequence[Template],
        *,
        numerics: str = "fast",
        points: int = 4,
        seed: int = 0,
        on_nest: OnNest = lambda done, total: None,
    ) -> None:
        self._device, self._templates = device, templates
        self._numerics, self._points, self._seed = numerics, points, seed
        self._on_nest = on_nest

    def search(self, graph: Graph) -> Searched:
        """The first wrong kernel of the program, cut down.

        Raises InvalidInput for symbolic sizes.
        """
        kernels, finding = self._first(graph)
        return Searched(kernels, None if finding is None else self._shrunk(finding))

    def _first(self, graph: Graph) -> tuple[int, Finding | None]:
        request = JobRequest(graph.digest, "cpu", Budget(), numerics=self._numerics)
        tasks = prepare(graph, request, self._templates, self._device.target).tasks
        tried = 0
        for done, nest in enumerate(tasks.nests.values()):
            self._on_nest(done, len(tasks.nests))
            candidates = list(self._kernels(nest))
            tried += len(candidates)
            for start in range(0, len(candidates), _BATCH):
                batch = candidates[start : start + _BATCH]
                for task, result in zip(batch, self._device.measure(batch), strict=True):
                    if isinstance(result.result, Failure) and result.result.stage in _WRONG:
                        part = _part(tasks, nest)
                        return tried, Finding(part, nest.ops, task, result.result)
        return tried, None

    def _kernels(self, nest: NestTask) -> Iterator[KernelTask]:
        """Distinct kernels of a nest: starting points first, then random ones."""
        target, chance, seen = self._device.target, random.Random(self._seed), set()
        for template in self._templates:
            if template.refuse(nest.nest, target) is not None:
                continue
            space = template.space(nest.nest, target)
            drawn = [
                tuple((p.name, chance.choice(p.choices)) for p in space.parameters)
                for _ in range(self._points)
            ]
            for point in (*space.seeds, *drawn):
                schedule = template.schedule(nest.nest, target, dict(point))
                if isinstance(schedule, Refusal) or schedule in seen:
                    continue
                seen.add(schedule)
                source = template.generate(nest.nest, target, schedule, _SYMBOL)
                yield KernelTask(nest.check, source, template.name, point)

    def _shrunk(self, finding: Finding) -> Finding:
        """Takes ops away from either end while some kernel of what is left is wrong."""
        for smaller in _smaller(finding.graph):
            try:
                found = self._first(smaller)[1]
            except InvalidInput:
                continue  # what is left is no program
            if found is not None and len(found.graph.nodes) < len(finding.graph.nodes):
                return self._shrunk(found)
        return finding


def _part(tasks: Tasks, nest: NestTask) -> Graph:
    """The first group of a nest as a program of its own."""
    program = tasks.program
    group = next(g for g, c in tasks.candidate_of.items() if c.task == nest.digest)
    domains = value_domains(program)
    return Extraction(program, domains).part(group.nodes, group.inputs, group.outputs)


def _smaller(graph: Graph) -> Iterator[Graph]:
    """The program without one of its nodes, for every node: what it read becomes an output where
    nothing else reads it, what it gave becomes an input where something does."""
    parts = Extraction(graph, value_domains(graph))
    for dropped in range(len(graph.nodes)):
        kept = [n for n in range(len(graph.nodes)) if n != dropped]
        made = {v for n in kept for v in graph.nodes[n].outputs}
        read = [v for n in kept for v in graph.nodes[n].inputs]
        inputs = [v for v in dict.fromkeys(read) if v not in made]
        outputs = [v for n in kept for v in graph.nodes[n].outputs if v not in read]
        if kept and outputs:
            yield parts.part(kept, inputs, outputs)
