"""Real models: captured whole, right against float64 and eager, and hardly an op left alone."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from graph_autofusion.module import OptimizedModule
from graph_autofusion.options import Options
from kernel_gen.fusion.group import FrameworkGroup
from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.build import Compiler
from tests.models.forced import ForcedSource
from tests.models.rows import DTYPES
from tests.models.zoo import MODELS, Case, case, cast

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
DOCS = Path(__file__).parents[2] / "docs"
_LEAST_RATE = 0.95
# Of a result's largest value, where eager happens to be exact; below, eager's own error counts.
_ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 8e-3}
_TIMES_EAGER = 4.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_whole_right_fused_and_as_published(
    kept_compiler: Compiler, name: str, dtype: str
) -> None:
    made = case(name, DTYPES[dtype])
    fast = OptimizedModule(made.module, Options(strict=True), ForcedSource(kept_compiler))
    with torch.no_grad():
        _assert_right(fast, made, DTYPES[dtype])
    report = fast.report
    assert (report.cache, report.reason) == ("hit", "")
    assert report.fusion_rate >= _LEAST_RATE
    _assert_published(fast.plan.graph, name, dtype)
    codes = re.findall(r"^\| `([a-z-]+)`", (DOCS / "reason-codes.md").read_text(), re.MULTILINE)
    for group in fast.plan.cover.groups:
        if isinstance(group, FrameworkGroup):
            assert group.code in codes
            assert group.sentence


def _assert_right(fast: OptimizedModule, made: Case, dtype: torch.dtype) -> None:
    """Each result as near to float64 as eager's is, up to a small factor."""
    args, kwargs = cast((made.args, made.kwargs), torch.float64)
    exact = _tensors(copy.deepcopy(made.module).double()(*args, **kwargs))
    eager = _tensors(made.module(*made.args, **made.kwargs))
    found = _tensors(fast(*made.args, **made.kwargs))
    for have, other, want in zip(found, eager, exact, strict=True):
        assert (have.dtype, have.shape, have.stride()) == (other.dtype, other.shape, other.stride())
        allowed = _ROUNDING[dtype] * float(want.abs().max())
        eager_error = float((other.double() - want).abs().max())
        assert (have.double() - want).abs().max() <= allowed + _TIMES_EAGER * eager_error


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _assert_published(graph: Graph, name: str, dtype: str) -> None:
    (row,) = [row for row in _published() if (row.model, row.dtype) == (name, dtype)]
    assert row.nodes == len(graph.nodes)
    assert (row.left == "none") == all(node.op != "framework" for node in graph.nodes)


@dataclass(frozen=True, slots=True)
class _Published:
    """What a row of the table in the docs says: `left` to torch; the rate in percent."""

    model: str
    dtype: str
    nodes: int
    left: str
    rate: float


def _published() -> list[_Published]:
    row = r"^\| ([^|]+?) \| (fp32|bf16) \| (\d+) \| ([^|]+?) \| \d+ of \d+ \| ([\d.]+) % \|"
    found = re.findall(row, (DOCS / "models.md").read_text(), re.MULTILINE)
    return [
        _Published(name, dtype, int(nodes), left, float(rate))
        for name, dtype, nodes, left, rate in found
    ]


def test_the_published_table_has_each_model_in_each_dtype() -> None:
    rows = _published()
    assert [(row.model, row.dtype) for row in rows] == [(m, d) for m in MODELS for d in DTYPES]
    assert all(row.rate >= 100 * _LEAST_RATE for row in rows)
