"""A graph as one nest, through each template that takes it, at its first guess and at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.codegen.source import KernelSource
from kernel_gen.codegen.template import Template
from kernel_gen.errors import Refusal
from kernel_gen.fusion.lower import Lowered, Lowering
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Point, Schedule
from tests.codegen.kernel_graphs import GraphCase
from tests.soak.fuzz.cases import FuzzCase
from tests.soak.fuzz.guarded import guarded

_RANDOM_POINTS = 2  # per template
_DRAWS = 3  # of a point, where choices do not go together
_MORE_THREADS = (2, 3, 4)
_TEXT_BYTES = 6_000  # of a graph's kernels: a compiler translates some 100 KB a second
_MOST_TEXT_BYTES = 80_000  # of one kernel; a topk of a topk of a topk has hundreds of KB


@dataclass(frozen=True, slots=True)
class Whole:
    """A kernel of a whole graph, and the numbers of threads it is run on."""

    case: GraphCase
    template: str
    point: Point
    source: KernelSource
    threads: tuple[int, int]


def whole_kernels(case: FuzzCase, target: Target, symbol: str) -> list[Whole] | Refusal:
    """Kernels of all the graph's nodes as one group, legal or not; why there is no nest."""
    program = case.graph
    group = make_group(program, range(len(program.nodes)))
    lowered = Lowering(program, case.numerics).lower(group)
    if isinstance(lowered, Refusal):
        return lowered
    rng = random.Random(case.seed)
    inputs = [guarded(array, at_end=rng.random() < 0.7) for array in case.inputs]
    kernels = GraphCase(program, lowered, inputs)
    return [
        Whole(kernels, template.name, point, source, (1, rng.choice(_MORE_THREADS)))
        for template, point, source in _chosen(_sources(lowered, target, rng, symbol))
    ]


def _chosen(
    sources: Iterator[tuple[Template, Point, KernelSource]],
) -> Iterator[tuple[Template, Point, KernelSource]]:
    """As many as have little text, which a compiler takes the longest for; one at least, unless
    it alone would keep the compiler busy for seconds."""
    left = _TEXT_BYTES
    for found in sources:
        size = len(found[2].files[0][1])
        if size <= _MOST_TEXT_BYTES:
            yield found
        left -= size
        if left <= 0:
            return


def _sources(
    lowered: Lowered, target: Target, rng: random.Random, symbol: str
) -> Iterator[tuple[Template, Point, KernelSource]]:
    """A point of each template in turn, then another: now the first guess, now a random one."""
    nest = lowered.nest
    taking = [t for t in templates(target) if t.refuse(nest, target) is None]
    rng.shuffle(taking)
    points = [(t, _schedules(t, lowered, target, rng)) for t in taking]
    number = 0
    while points:
        for template, drawn in list(points):
            found = next(drawn, None)
            if found is None:
                points.remove((template, drawn))
                continue
            source = template.generate(nest, target, found[1], f"{symbol}_{number}")
            yield template, found[0], source
            number += 1


def _schedules(
    template: Template, lowered: Lowered, target: Target, rng: random.Random
) -> Iterator[tuple[Point, Schedule]]:
    """Distinct ones in a random order; the first guess must be one."""
    space = template.space(lowered.nest, target)
    first, seen = rng.randint(0, _RANDOM_POINTS), set[Schedule]()
    for turn in range(1 + _RANDOM_POINTS):
        for _ in range(1 if turn == first else _DRAWS):
            point = {p.name: rng.choice(p.choices) for p in space.parameters}
            point = dict(space.seeds[0]) if turn == first else point
            schedule = template.schedule(lowered.nest, target, point)
            if not isinstance(schedule, Refusal):
                if schedule not in seen:
                    yield point, schedule
                seen.add(schedule)
                break
            assert turn != first, f"{template.name}'s first guess: {schedule.sentence}"
