"""Random graphs as one kernel each, against the reference, with all rules of the chip checked."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from tests.codegen.ascend.ascend_run import check_graph, lowered, schedule_of
from tests.strategies import graphs, inputs_for

DTYPES = (
    DType.F32, DType.F16, DType.BF16, DType.I32, DType.I16, DType.I8, DType.U8, DType.BOOL,
)  # fmt: skip
COUNT = 12


def drawn(wanted: int) -> list[tuple[Graph, list[np.ndarray]]]:
    """Graphs that the chip can run, the same at each run."""
    found: list[tuple[Graph, list[np.ndarray]]] = []

    @seed(20)
    @settings(
        max_examples=8 * wanted, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        graph = data.draw(graphs(max_nodes=5, dtypes=DTYPES))
        inputs = data.draw(inputs_for(graph))
        if graph.nodes and len(found) < wanted:
            made = lowered(graph)
            if not isinstance(made, Refusal) and not isinstance(schedule_of(made.nest), Refusal):
                found.append((graph, inputs))

    draw()
    return found


def test_random_graphs(tmp_path: Path) -> None:
    cases = drawn(COUNT)
    assert len(cases) == COUNT
    for number, (graph, inputs) in enumerate(cases):
        try:
            check_graph(graph, inputs, tmp_path / str(number))
        except AssertionError as wrong:
            wrong.add_note(graph.to_json())
            raise
