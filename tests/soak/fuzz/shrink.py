"""The smallest part of a failing graph that still fails: the case for a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from kernel_gen.ir.arrays import Array
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.graph import Graph, Output
from kernel_gen.ir.rounding import stored
from kernel_gen.ir.types import ValueDomain
from tests.soak.fuzz.cases import FuzzCase
from tests.strategy_draft import WILD
from tests.strategy_traits import traits
from tuner.extract import Extraction

Fails = Callable[[FuzzCase], str | None]


def shrunk(case: FuzzCase, fails: Fails, why: str) -> tuple[FuzzCase, str]:
    """The smallest case found and why it fails; `case` itself where no part of it does."""
    for smaller in _parts(case):
        found = fails(smaller)
        if found is not None:
            return shrunk(smaller, fails, found)
    return case, why


def _parts(case: FuzzCase) -> Iterator[FuzzCase]:
    """The case without one of its nodes: what it gave becomes an input where something reads it,
    what it read an output where nothing else does."""
    graph, values = case.graph, _values(case)
    domains = [ValueDomain()] * len(graph.values)
    for item in graph.inputs:
        domains[item.value] = item.domain
    extraction, known = Extraction(graph, domains), traits(graph)
    for dropped in range(len(graph.nodes)):
        kept = [n for n in range(len(graph.nodes)) if n != dropped]
        made = {v for n in kept for v in graph.nodes[n].outputs}
        read = list(dict.fromkeys(v for n in kept for v in graph.nodes[n].inputs))
        inputs = [v for v in read if v not in made]
        outputs = [v for n in kept for v in graph.nodes[n].outputs if v not in read]
        if kept and outputs:
            part = extraction.part(kept, inputs, outputs)
            named = [
                replace(item, name=WILD if known[value].wild else "")
                for item, value in zip(part.inputs, inputs, strict=True)
            ]
            whole = replace(part, inputs=tuple(named))
            yield replace(case, graph=whole, inputs=[values[v] for v in inputs])


def _values(case: FuzzCase) -> dict[int, Array]:
    """What each value of the graph is, in its storage type."""
    graph: Graph = case.graph
    nodes = [value for node in graph.nodes for value in node.outputs]
    all_of_it = replace(graph, outputs=tuple(Output(value) for value in nodes))
    results = zip(nodes, evaluate(all_of_it, case.inputs, "strict"), strict=True)
    found = {
        value: np.ascontiguousarray(stored(array, graph.type_of(value).dtype)).reshape(array.shape)
        for value, array in results
    }
    given = zip(graph.inputs, case.inputs, strict=True)
    return found | {item.value: array for item, array in given}
