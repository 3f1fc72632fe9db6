"""What a plan makes of a model: which ops share a kernel, and how far its results are off."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import graph_autofusion as gaf
from graph_autofusion.module import OptimizedModule
from graph_autofusion.options import Options
from kernel_gen.frontend import capture
from kernel_gen.fusion.sharing import Sharing
from tests.models.forced import ForcedSource
from tests.models.sizes import MEDIUM, SMALL
from tests.models.zoo import Case, case, cast

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Row:
    """A model in one dtype. `nodes` of its graph, `left` those without a form in primitives, as
    "op (code)". In the plan `fused` of `ops` computing ones share a kernel, `alone` names the
    others, with their codes where a search gave some. Errors are the largest against float64, as
    shares of the largest value."""

    model: str
    dtype: str
    nodes: int
    left: tuple[str, ...]
    fused: int
    ops: int
    alone: tuple[str, ...]
    error: float
    eager_error: float
    speedup: float | None = None
    seconds: float = 0.0
    trials: int = 0

    @property
    def rate(self) -> float:
        return self.fused / self.ops


def forced(name: str, dtype: str, source: ForcedSource) -> Row:
    """The cover that shares most, built and run, at the tests' size."""
    made = case(name, DTYPES[dtype], SMALL)
    return _row(name, dtype, made, OptimizedModule(made.module, Options(strict=True), source))


def searched(name: str, dtype: str, seconds: float) -> Row:
    """The plan that a search on this machine chooses, at a larger size."""
    made = case(name, DTYPES[dtype], MEDIUM)
    fast = gaf.optimize(made.module, budget=seconds, strict=True)
    row = _row(name, dtype, made, fast)
    return dataclasses.replace(
        row,
        alone=_counted(f"{u.op} ({u.code})" for u in fast.report.unfused),
        speedup=fast.report.speedup,
        seconds=fast.plan.summary.tuning_seconds,
        trials=fast.plan.summary.trials,
    )


def _row(name: str, dtype: str, made: Case, fast: OptimizedModule) -> Row:
    with torch.no_grad():
        graph = capture(made.module, made.args, example_kwargs=made.kwargs).graph
        found = _tensors(fast(*made.args, **made.kwargs))
        eager = _tensors(made.module(*made.args, **made.kwargs))
        exact = _exact(made)
    plan = fast.plan
    sharing = Sharing(plan.program, plan.layout.folded)
    alone = sharing.left_alone(plan.cover.groups)
    left = (n for n in graph.nodes if n.op == "framework")
    return Row(
        name,
        dtype,
        len(graph.nodes),
        _counted(f"{n.attr('target')} ({n.attr('code')})" for n in left),
        round(fast.report.fusion_rate * sharing.ops),
        sharing.ops,
        _counted(plan.program.nodes[node].op for node, _ in alone),
        _error(found, exact),
        _error(eager, exact),
    )


def _counted(words: Iterable[str]) -> tuple[str, ...]:
    counts = Counter(words)
    return tuple(word if count == 1 else f"{word} ×{count}" for word, count in counts.items())


def _exact(made: Case) -> list[Tensor]:
    args, kwargs = cast((made.args, made.kwargs), torch.float64)
    return _tensors(copy.deepcopy(made.module).double()(*args, **kwargs))


def _tensors(tree: object) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _error(found: list[Tensor], exact: list[Tensor]) -> float:
    pairs = zip(found, exact, strict=True)
    return max(float((a.double() - b).abs().max() / b.abs().max()) for a, b in pairs)


def read(record: Path) -> list[Row]:
    """The rows of a record, one line each; none if there is no file yet."""
    lines = record.read_text().splitlines() if record.exists() else []
    rows = [json.loads(line) for line in lines]
    return [
        Row(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}) for row in rows
    ]


def add(record: Path, row: Row) -> None:
    """Appends a row."""
    with record.open("a") as file:
        file.write(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n")
