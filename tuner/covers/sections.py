"""Covers of long programs, section by section.

Solvers take far more than linear time: of 40,000 options the first relaxation alone outlasts any
limit. A long program is cut where few values pass, into runs of nodes in their order. No option
makes values on both sides of a cut, so each section is a problem of its own once the later ones
have said what they read; what groups across the cuts would have saved is lost.
"""

from __future__ import annotations

import itertools
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence

from kernel_gen.ir.graph import Graph
from tuner.covers.problem import Problem, cycles

_NODES = 40  # of a section, about: mostly solved in less than a tenth of a second
_SLACK = 0.25  # of it, in which the narrowest place is looked for
_SECONDS, _SHARE = 0.3, 0.125  # of what is left: for a section, as long as many are alike

Solve = Callable[[Problem, float], list[int] | None]
"""Positions of the best choice found within that many seconds; None if there is none."""


def by_sections(
    problem: Problem, seconds: float, solve: Solve, nodes: int = _NODES
) -> list[int] | None:
    """A choice of `problem`'s options that is the best of each section, of about so many `nodes`,
    for what later ones read; sections that time does not reach get a plain one. None where some
    section has none alone."""
    cuts = _cuts(problem.program, nodes)
    end = time.monotonic() + seconds
    known: dict[object, list[int] | None] = {}
    chosen: list[int] = []
    wanted = set(problem.needed)
    for section, positions in reversed(list(enumerate(_dealt(problem, cuts)))):
        inside = _values(problem.program, cuts, section)
        part = problem.part(positions, wanted & inside, inside)
        if not part.needed and not part.effects:
            continue
        key = part.shape(min(inside, default=0))
        if key not in known:
            left = max(0.0, end - time.monotonic())
            share = max(left / (section + 1), min(_SECONDS, _SHARE * left))
            known[key] = (solve(part, share) if left else None) or part.start()
        found = known[key]
        if found is None:
            return None
        taken = [positions[p] for p in found]
        chosen += taken
        for position in taken:
            wanted |= problem.reads[position]
    made = {value for position in chosen for value in problem.makes[position]}
    if wanted <= made and not cycles(problem.edges(chosen)):
        return sorted(chosen)
    return None  # an option read what comes after all that it makes


def _cuts(program: Graph, nodes: int) -> list[int]:
    """First nodes of the sections."""
    passing = _passing(program)
    least, most = round(nodes * (1 - _SLACK)), round(nodes * (1 + _SLACK))
    cuts = [0]
    while len(program.nodes) - cuts[-1] > most:
        window = range(cuts[-1] + least, cuts[-1] + most + 1)
        cuts.append(min(window, key=lambda node: (passing[node], node)))
    return cuts


def _passing(program: Graph) -> list[int]:
    """Per node, how many values made before it are read by it or later ones."""
    change = [0] * (len(program.nodes) + 1)
    users = program.consumers()
    for value, maker in program.producers().items():
        last = users.get(value, (maker,))[-1]
        change[maker + 1] += 1
        change[last + 1 if last > maker else maker + 1] -= 1
    return list(itertools.accumulate(change))


def _values(program: Graph, cuts: Sequence[int], section: int) -> set[int]:
    end = cuts[section + 1] if section + 1 < len(cuts) else len(program.nodes)
    return {value for node in program.nodes[cuts[section] : end] for value in node.outputs}


def _dealt(problem: Problem, cuts: Sequence[int]) -> list[list[int]]:
    """Positions of the options of each section: those that make values there and nowhere else."""
    made_by = problem.program.producers()
    homes: list[set[int]] = [{made_by[v] for v in values} for values in problem.makes]
    for node, users in zip(problem.effect_nodes, problem.effects, strict=True):
        for position in users:
            homes[position].add(node)
    dealt: list[list[int]] = [[] for _ in cuts]
    for position, nodes in enumerate(homes):
        sections = {bisect_right(cuts, node) - 1 for node in nodes}
        if len(sections) == 1:
            dealt[sections.pop()].append(position)
    return dealt
