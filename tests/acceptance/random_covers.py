"""Whole programs under random legal covers with random schedules, run as plans are run.

Not what a search would choose: any cover of a program by its candidates is right, whatever the
templates and points of its kernels, and whatever torch runs between them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.errors import Refusal
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.candidates import Limits, candidates
from kernel_gen.fusion.group import FusionGroup, FusionPlan
from kernel_gen.fusion.judge import Candidate
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.graph import Graph, InputKind, Output
from kernel_gen.ir.target import Target
from kernel_gen.ir.verify import verify
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.key import PlanKey, plan_key
from kernel_gen.runtime.plan import Kernel, Plan, SearchSummary
from kernel_gen.runtime.plan_text import plan_to_json
from kernel_gen.runtime.serialize import plan_from_json
from kernel_gen.runtime.torch_glue import BoundPlan, TorchPlan
from tests.fixtures.tensors import to_array, to_tensor
from tests.strategies import assert_outputs_match, graphs, random_input
from tests.strategy_steps import STEPS
from tuner.covers.solver import CoverOption, Overheads, best_covers

_SUMMARY = SearchSummary(2.0, 1.0, 1.5, True, 0, 0, 0.0, 0.0)
_LIMITS = Limits(groups=120, lowered=40)
_FREE = Overheads(kernel_us=0.0, framework_us=0.0, alone=0.0)
# Which of equal elements torch.topk names is up to its sort; rows of NaN, to its attention kernel.
_UP_TO_TORCH = {True: ("largest",), False: ("largest", "attention")}
_DRAWS = 4  # of a point, before a template's first guess is taken


def with_writes(graph: Graph, rng: random.Random) -> Graph:
    """Some outputs as new values of inputs of their type, which the program then writes."""
    outputs, written = list(graph.outputs), set[int]()
    for number, output in enumerate(outputs):
        fits = [
            position
            for position, item in enumerate(graph.inputs)
            if position not in written and _may_hold(graph, item.value, output)
        ]
        if fits and rng.random() < 0.5:
            outputs[number] = Output(output.value, mutates=rng.choice(fits))
            written.add(outputs[number].mutates or 0)
    inputs = [
        replace(item, kind=InputKind.BUFFER)
        if position in written and item.kind is not InputKind.USER
        else item
        for position, item in enumerate(graph.inputs)
    ]
    made = replace(graph, inputs=tuple(inputs), outputs=tuple(outputs))
    verify(made)
    return made


def _may_hold(graph: Graph, value: int, output: Output) -> bool:
    """Whether eager could write the output over an input: no element of it is there twice."""
    kind, new = graph.type_of(value), graph.type_of(output.value)
    pairs = zip(kind.shape, kind.element_strides, strict=True)
    return (kind.dtype, kind.shape) == (new.dtype, new.shape) and all(
        stride or extent == 1 for extent, stride in pairs
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """A cover of a graph and its kernels, not yet built."""

    graph: Graph
    program: Graph
    key: PlanKey
    cover: FusionPlan
    kernels: Sequence[Kernel]

    def assembled(self, target: Target, compiler: Compiler) -> Plan:
        return assemble(
            self.program, self.graph, self.key, self.cover, self.kernels, target, compiler, _SUMMARY
        )

    def described(self) -> list[str]:
        """Groups and schedules, for people."""
        lines = [f"{kernel.group.nodes}: {kernel.schedule}" for kernel in self.kernels]
        return [*lines, f"cover {[group.nodes for group in self.cover.groups]}"]


def random_parts(graph: Graph, target: Target, rng: random.Random, symbol: str = "k") -> Parts:
    """Kernels that nobody has chosen; their C names begin with `symbol`."""
    ruled = apply_rules(graph, load_rules())
    numerics = rng.choice(("fast", "strict"))
    found = candidates(
        ruled.program, templates(target), target, ruled.constraints, numerics, _LIMITS
    )
    small = rng.choice((0.0, 1.0, 1.6))  # how much smaller groups are liked
    foreign = rng.choice((0.0, 0.7, 3.0))  # how little torch is
    groups = [candidate.group for candidate in found.groups]
    options = [CoverOption(g, rng.random() * len(g.nodes) ** small) for g in groups]
    options += [CoverOption(g, foreign + rng.random()) for g in found.library]
    cover = best_covers(ruled.program, options, overheads=_FREE)[0].plan
    known = {candidate.group: candidate for candidate in found.groups}
    fused = [group for group in cover.groups if isinstance(group, FusionGroup)]
    kernels = [_kernel(known[g], target, rng, f"{symbol}{i}") for i, g in enumerate(fused)]
    key = plan_key(graph, target, numerics=numerics)
    return Parts(graph, ruled.program, key, cover, kernels)


def _kernel(candidate: Candidate, target: Target, rng: random.Random, symbol: str) -> Kernel:
    nest, chosen = candidate.lowered.nest, rng.choice(candidate.templates)
    template = next(t for t in templates(target) if t.name == chosen)
    space = template.space(nest, target)
    points = [{p.name: rng.choice(p.choices) for p in space.parameters} for _ in range(_DRAWS)]
    for point in [*points, dict(space.seeds[0])]:
        schedule = template.schedule(nest, target, point)
        if not isinstance(schedule, Refusal):
            break
    assert not isinstance(schedule, Refusal), f"{template.name}'s first guess: {schedule.sentence}"
    source = template.generate(nest, target, schedule, symbol)
    return Kernel(candidate.group, candidate.lowered.operands, nest, schedule, source, ("op",))


@dataclass(slots=True)
class Checked:
    """A bound plan, and the constants that it was bound to."""

    graph: Graph
    bound: BoundPlan
    constants: dict[int, torch.Tensor]  # by position among the inputs

    def call(self, rng: np.random.Generator, threads: int) -> list[torch.Tensor]:
        """A run on fresh inputs, compared with the reference, as are the inputs that it wrote."""
        users = {
            position: to_tensor(random_input(rng, self.graph.type_of(item.value), item))
            for position, item in enumerate(self.graph.inputs)
            if item.kind is InputKind.USER
        }
        tensors = {**self.constants, **users}
        arrays = [to_array(tensors[i]).copy() for i in range(len(tensors))]
        got = self.bound(list(users.values()), threads, checked=True)
        assert_outputs_match(self.graph, arrays, [to_array(tensor) for tensor in got])
        for output, tensor in zip(self.graph.outputs, got, strict=True):
            if output.mutates is not None:
                assert tensor.data_ptr() == tensors[output.mutates].data_ptr()
        return got


def check_random_cover(
    graph: Graph, target: Target, compiler: Compiler, number: int
) -> tuple[int, int]:
    """Runs a random plan of the graph, stored and read back; how many kernels and framework groups
    it had. A failure names the plan's groups and schedules."""
    parts = random_parts(graph, target, random.Random(number))
    check_plan(parts, parts.assembled(target, compiler), number)
    return len(parts.kernels), len(parts.cover.groups) - len(parts.kernels)


def check_plan(parts: Parts, plan: Plan, number: int) -> None:
    """Runs the plan on inputs drawn from seed `number`; a failure names what it is made of."""
    try:
        _check(parts.graph, plan, number)
    except AssertionError as wrong:
        for line in (f"number {number}", *parts.described(), parts.graph.to_json()):
            wrong.add_note(line)
        raise


def _check(graph: Graph, plan: Plan, number: int) -> None:
    objects = {artifact.sha256: artifact.data for artifact in plan.artifacts}
    numbers = np.random.default_rng(number)
    constants = {
        position: to_tensor(random_input(numbers, graph.type_of(item.value), item))
        for position, item in enumerate(graph.inputs)
        if item.kind is not InputKind.USER
    }
    bound = TorchPlan(plan_from_json(plan_to_json(plan), objects)).bind(list(constants.values()))
    checked = Checked(graph, bound, constants)
    fresh = [o.mutates is None for o in graph.outputs]
    held, before = list[torch.Tensor](), list[torch.Tensor]()
    for threads in (1, 2, 3):  # what an earlier call gave stays as it was
        found = checked.call(numbers, threads)
        held += [tensor for tensor, is_new in zip(found, fresh, strict=True) if is_new]
        before += [tensor.clone() for tensor in held[len(before) :]]
    for tensor, copy in zip(held, before, strict=True):
        assert to_array(tensor).tobytes() == to_array(copy).tobytes()


def check_random_covers(
    target: Target, compiler: Compiler, count: int, number: int, max_nodes: int
) -> tuple[int, int]:
    """Checks a random cover each of `count` random graphs drawn from seed `number`."""
    kernels = foreign = 0
    for position, graph in enumerate(_drawn(count, number, max_nodes)):
        found = check_random_cover(graph, target, compiler, number * 1000 + position)
        kernels, foreign = kernels + found[0], foreign + found[1]
    return kernels, foreign


def _drawn(count: int, number: int, max_nodes: int) -> list[Graph]:
    """Half of them without NaN and infinities: torch's attention kernels differ on those."""
    found: list[Graph] = []

    @seed(number)
    @settings(max_examples=count, database=None, phases=[Phase.generate], deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        finite = data.draw(st.booleans())
        steps = [step for step in STEPS if step not in _UP_TO_TORCH[finite]]
        graph = data.draw(
            graphs(max_nodes=max_nodes, steps=steps, specials=not finite, strided=True)
        )
        found.append(with_writes(graph, random.Random(data.draw(st.integers(0, 2**32)))))

    collect()
    return [graph for graph in found if graph.nodes]
