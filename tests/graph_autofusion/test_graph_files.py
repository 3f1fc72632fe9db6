"""Files of graph JSON where a model is expected."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import graph_autofusion as gaf
from kernel_gen.ir.graph import Graph


def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.softmax(nn.functional.gelu(x * 2) @ y, -1)


def written(graph: Graph, folder: Path) -> Path:
    path = folder / "graph.json"
    path.write_text(graph.to_json())
    return path


def test_a_graph_runs_and_is_the_program_it_was_captured_from(tmp_path: Path) -> None:
    x, y = torch.randn(4, 8), torch.randn(8, 5)
    graph = gaf.capture(program, (x, y))
    path = written(graph, tmp_path)
    assert gaf.capture(path).digest == graph.digest
    fast = gaf.optimize(path, on_miss="eager")
    assert gaf.capture(fast, (x, y)).digest == graph.digest
    with torch.no_grad():
        assert torch.equal(fast(x, y), program(x, y))


def test_a_graph_that_needs_weights_names_the_model(tmp_path: Path) -> None:
    path = written(gaf.capture(nn.Linear(8, 8), torch.randn(2, 8)), tmp_path)
    assert len(gaf.capture(path).inputs) == 3
    with pytest.raises(gaf.UnsupportedModel, match="pass the model"):
        gaf.optimize(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"nodes": 3}', "\x00"])
def test_what_is_no_graph_is_the_callers_mistake(text: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(text)
    for read in (gaf.optimize, gaf.capture):
        with pytest.raises(gaf.InvalidInput):
            read(path)
