"""Plans without a search: the cover that fuses most, of the templates' first guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graph_autofusion.resolution import Accepts, Resolution
from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.codegen.template import Template
from kernel_gen.errors import Refusal
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.candidates import Candidates, candidates
from kernel_gen.fusion.group import FusionGroup, FusionPlan
from kernel_gen.fusion.judge import Candidate
from kernel_gen.fusion.rules import load_rules
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import plan_key
from kernel_gen.runtime.plan import Kernel, Plan, SearchSummary
from tuner.covers.solver import CoverOption, Overheads, best_covers
from tuner.tasks import op_names

_SUMMARY = SearchSummary(1.0, 2.0, 1.5, True, 0, 0, 0.0, 0.0)
_ALONE = 100.0  # of an op that shares its kernel with no other, beside 1 for a group
_FREE = Overheads(kernel_us=0.0, framework_us=0.0, alone=0.0)


class ForcedSource:
    """A plan source that makes a plan of fused kernels for every program it is asked for."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler

    def resolve(self, graph: Graph, accepts: Accepts) -> Resolution:
        return Resolution(forced_plan(graph, self._compiler), "hit")

    def follow(self, job: str, graph: Graph, accepts: Accepts) -> Resolution | None:
        return self.resolve(graph, accepts)


@dataclass(frozen=True, slots=True)
class Forced:
    """A program under the built-in rules, its candidates, and the cover that fuses most of it."""

    program: Graph
    found: Candidates
    cover: FusionPlan

    @property
    def rate(self) -> float:
        """The fusion rate; what depends on constants only runs when a plan is bound."""
        return Sharing(self.program, self.found.constant).rate(self.cover.groups)


def forced_cover(graph: Graph) -> Forced:
    """The cover by all candidates for this machine."""
    ruled, target = apply_rules(graph, load_rules()), host_target()
    found = candidates(ruled.program, templates(target), target, ruled.constraints)
    options = _options(ruled.program, found)
    return Forced(
        ruled.program, found, best_covers(ruled.program, options, overheads=_FREE)[0].plan
    )


def forced_plan(graph: Graph, compiler: Compiler) -> Plan:
    """A plan for this machine under the key that `optimize` asks for."""
    forced, target = forced_cover(graph), host_target()
    by_group = {candidate.group: candidate for candidate in forced.found.groups}
    fused = [by_group[group] for group in forced.cover.groups if isinstance(group, FusionGroup)]
    kernels = [_kernel(forced.program, candidate, target) for candidate in fused]
    key = plan_key(graph, target)
    return assemble(forced.program, graph, key, forced.cover, kernels, target, compiler, _SUMMARY)


def _options(program: Graph, found: Candidates) -> list[CoverOption]:
    groups = [*(candidate.group for candidate in found.groups), *found.library]
    sharing = Sharing(program)
    return [CoverOption(group, _ALONE if sharing.alone(group) else 1.0) for group in groups]


def _kernel(program: Graph, candidate: Candidate, target: Target) -> Kernel:
    template, nest = _template(candidate, templates(target)), candidate.lowered.nest
    schedule = template.schedule(nest, target, dict(template.space(nest, target).seeds[0]))
    assert not isinstance(schedule, Refusal), schedule
    source = template.generate(nest, target, schedule, f"k_{candidate.task[:16]}")
    ops = op_names(program, candidate.group.nodes)
    return Kernel(candidate.group, candidate.lowered.operands, nest, schedule, source, ops)


def _template(candidate: Candidate, known: Sequence[Template]) -> Template:
    """The most special template that takes the group: plain loops come last."""
    return next(template for template in known if template.name in candidate.templates)
