"""Builds many kernels into one shared object, runs them, and compares with references."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.codegen.source import KernelSource
from kernel_gen.codegen.template import Template
from kernel_gen.errors import Refusal
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.loopnest import BufferRole, LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import static_shape
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import LoadedKernel
from kernel_gen.schedule.schedule import Choice, Point

POISON = 0x7B  # bytes of outputs before a kernel runs
_FENCE = 64  # bytes around an output that no kernel may touch


@dataclass(frozen=True, slots=True)
class Candidate:
    """A nest under one template and point."""

    nest: LoopNest
    template: str
    point: Point
    source: KernelSource


@dataclass(slots=True)
class KernelBench:
    """Collects candidates, builds them at once, runs them one by one."""

    compiler: Compiler
    target: Target
    candidates: list[Candidate] = field(default_factory=list)

    def templates(self) -> dict[str, Template]:
        return {t.name: t for t in templates(self.target) if t.name != "matmul"}

    def taking(self, nest: LoopNest) -> list[Template]:
        """Templates that take the nest."""
        return [t for t in self.templates().values() if t.refuse(nest, self.target) is None]

    def add(self, nest: LoopNest, template: str, **choices: Choice) -> Candidate | Refusal:
        """A candidate at the template's first seed, with some choices replaced."""
        made = self.templates()[template]
        point = {**dict(made.space(nest, self.target).seeds[0]), **choices}
        return self.add_point(nest, made, point)

    def add_point(self, nest: LoopNest, template: Template, point: Point) -> Candidate | Refusal:
        schedule = template.schedule(nest, self.target, point)
        if isinstance(schedule, Refusal):
            return schedule
        source = template.generate(nest, self.target, schedule, f"k{len(self.candidates)}")
        candidate = Candidate(nest, template.name, point, source)
        self.candidates.append(candidate)
        return candidate

    def add_random(self, nest: LoopNest, rng: random.Random, template: Template) -> None:
        """A candidate at a random point; refused points are skipped."""
        space = template.space(nest, self.target)
        self.add_point(nest, template, {p.name: rng.choice(p.choices) for p in space.parameters})

    def build(self) -> list[LoadedKernel]:
        """All candidates, from one translation unit."""
        built = self.compiler.compile_texts(
            [c.source.files[0] for c in self.candidates], self.target
        )
        assert not isinstance(built, Failure), built.message
        path = self.compiler.path_of(built)
        return [LoadedKernel(path, c.source, c.nest) for c in self.candidates]


def run_kernel(
    kernel: LoadedKernel, inputs: Sequence[np.ndarray], threads: int = 1
) -> list[np.ndarray]:
    """Poisoned outputs after one call; the call must succeed and write nothing else."""
    given = iter(np.asarray(a) for a in inputs)
    fenced = {
        i: _fenced(kernel.nest, i)
        for i, b in enumerate(kernel.nest.buffers)
        if b.role is BufferRole.OUTPUT
    }
    operands = [
        fenced[i][1] if i in fenced else next(given) for i in range(len(kernel.nest.buffers))
    ]
    before = [array.tobytes() for i, array in enumerate(operands) if i not in fenced]
    assert kernel.run(operands, threads) == 0
    after = [array.tobytes() for i, array in enumerate(operands) if i not in fenced]
    assert before == after, "wrote over an input"
    for memory, _ in fenced.values():
        around = np.concatenate([memory[:_FENCE], memory[-_FENCE:]])
        assert (around == POISON).all(), "wrote beside an output"
    return [array for _, array in fenced.values()]


def _fenced(nest: LoopNest, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Memory full of a byte that no result is made of, and the output in the midst of it."""
    kind = nest.buffers[position].type
    memory = np.full(kind.nbytes + 2 * _FENCE, POISON, np.uint8)
    body = memory[_FENCE : memory.size - _FENCE].view(numpy_dtype(kind.dtype))
    return memory, body.reshape(static_shape(kind.shape))


def poisoned(nest: LoopNest, position: int) -> np.ndarray:
    """An output array full of a byte that no result is made of."""
    kind = nest.buffers[position].type
    array = np.empty(static_shape(kind.shape), numpy_dtype(kind.dtype))
    array.view(np.uint8 if array.ndim else array.dtype)[...] = POISON
    return array
