"""Real models: captured whole, right against float64 and eager, and hardly an op left alone."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from graph_autofusion.module import OptimizedModule
from graph_autofusion.options import Options
from kernel_gen.frontend import capture
from kernel_gen.fusion.group import FrameworkGroup
from tests.fixtures.compilers import patient_compiler
from tests.models.forced import ForcedSource
from tests.models.rows import DTYPES
from tests.models.zoo import MODELS, Case, case, cast

# One worker builds the kernels; many models have some in common.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("models"),
    pytest.mark.filterwarnings("ignore"),
]
DOCS = Path(__file__).parents[2] / "docs"
_LEAST_RATE = 0.95
# Of a result's largest value, where eager happens to be exact; below, eager's own error counts.
_ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 8e-3}
_TIMES_EAGER = 4.0


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ForcedSource:
    return ForcedSource(patient_compiler(tmp_path_factory.mktemp("models")))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_whole_right_and_fused(
    source: ForcedSource, name: str, dtype: torch.dtype
) -> None:
    made = case(name, dtype)
    fast = OptimizedModule(made.module, Options(strict=True), source)
    with torch.no_grad():
        _assert_right(fast, made, dtype)
    report = fast.report
    assert (report.cache, report.reason) == ("hit", "")
    assert report.fusion_rate >= _LEAST_RATE
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


def _published() -> Iterator[tuple[str, str, int, str, float]]:
    """Model, dtype, nodes, what is left to torch, and rate of each row of the table in the docs."""
    row = r"^\| ([^|]+?) \| (fp32|bf16) \| (\d+) \| ([^|]+?) \| \d+ of \d+ \| ([\d.]+) % \|"
    for name, dtype, nodes, left, rate in re.findall(
        row, (DOCS / "models.md").read_text(), re.MULTILINE
    ):
        yield name, dtype, int(nodes), left, float(rate)


def test_the_published_table_has_each_model_in_each_dtype() -> None:
    rows = list(_published())
    assert [row[:2] for row in rows] == [(name, dtype) for name in MODELS for dtype in DTYPES]
    for name, dtype, nodes, left, rate in rows:
        made = case(name, DTYPES[dtype])
        with torch.no_grad():
            graph = capture(made.module, made.args, example_kwargs=made.kwargs).graph
        assert nodes == len(graph.nodes), (name, dtype)
        assert (left == "none") == all(node.op != "framework" for node in graph.nodes)
        assert rate >= 100 * _LEAST_RATE
