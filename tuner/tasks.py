"""What a job has to find out: one task per distinct nest, one per distinct framework part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gen.fusion.candidates import Candidates
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.fusion.judge import Candidate
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.types import ValueDomain
from tuner.checks.domains import value_domains
from tuner.child.messages import NestCheck
from tuner.extract import Extraction

_NOT_COMPUTING = (OpKind.VIEW, OpKind.SOURCE)


@dataclass(frozen=True, slots=True)
class NestTask:
    """A nest to tune. `ops` names the ops of the first group that gave it, for people."""

    digest: str
    nest: LoopNest
    check: NestCheck
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tasks:
    """All tasks of a program, and which group each one speaks for.

    `library` maps a digest to a part as a graph; equal parts are timed once.
    """

    program: Graph
    candidates: Candidates
    nests: dict[str, NestTask]
    library: dict[str, Graph]
    library_of: dict[FrameworkGroup, str]
    candidate_of: dict[FusionGroup, Candidate]

    def is_single(self, group: FusionGroup | FrameworkGroup) -> bool:
        """Whether the group computes one op only (views and sources aside)."""
        return len(computing_nodes(self.program, group.nodes)) <= 1


def make_tasks(
    program: Graph, candidates: Candidates, strict: bool, narrow_products: bool = False
) -> Tasks:
    """The tasks of a program's candidates; flags as in `NestCheck`."""
    domains = value_domains(program)
    nests: dict[str, NestTask] = {}
    for candidate in candidates.groups:
        if candidate.task not in nests:
            nests[candidate.task] = _nest_task(program, candidate, domains, strict, narrow_products)
    library: dict[str, Graph] = {}
    library_of: dict[FrameworkGroup, str] = {}
    parts = Extraction(program, domains)
    for group in candidates.library:
        part = parts.part(group.nodes, group.inputs, group.outputs)
        digest = parts.digest(part)
        library.setdefault(digest, part)
        library_of[group] = digest
    candidate_of = {candidate.group: candidate for candidate in candidates.groups}
    return Tasks(program, candidates, nests, library, library_of, candidate_of)


def _nest_task(
    program: Graph,
    candidate: Candidate,
    domains: Sequence[ValueDomain],
    strict: bool,
    narrow_products: bool,
) -> NestTask:
    nest = candidate.lowered.nest
    known = tuple(domains[value] for value in candidate.lowered.operands)
    check = NestCheck(candidate.task, nest, known, strict, narrow_products=narrow_products)
    return NestTask(candidate.task, nest, check, op_names(program, candidate.group.nodes))


def op_names(program: Graph, nodes: Sequence[int]) -> tuple[str, ...]:
    """Ops of the nodes, for people."""
    return tuple(program.nodes[node].op for node in nodes)


def computing_nodes(program: Graph, nodes: Sequence[int]) -> tuple[int, ...]:
    """The nodes that compute something: neither views nor sources."""
    return tuple(n for n in nodes if spec(program.nodes[n].op).kind not in _NOT_COMPUTING)
