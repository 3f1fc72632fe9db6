"""What searches make of the models: rates of the covers that they choose, and errors."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import graph_autofusion as gaf
from kernel_gen.frontend import capture
from kernel_gen.fusion.group import FrameworkGroup
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.runtime.plan import Plan
from tests.models.sizes import MEDIUM
from tests.models.zoo import Case, case, cast

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Row:
    """A model in one dtype. `nodes` of its graph, `left` those without a form in primitives, as
    "op (code)". Of the plan that a search chose: `fused` of `ops` computing ones share a kernel,
    `alone` names the others with their codes, `by_torch` what torch runs at each call. Errors are
    the largest against float64, as shares of the largest value."""

    model: str
    dtype: str
    nodes: int
    left: tuple[str, ...]
    fused: int
    ops: int
    alone: tuple[str, ...]
    by_torch: tuple[str, ...]
    error: float
    eager_error: float
    speedup: float | None
    seconds: float
    trials: int

    @property
    def rate(self) -> float:
        return self.fused / self.ops


def searched(name: str, dtype: str, seconds: float) -> Row:
    """Tunes the model for `seconds` on this machine. Raises if the search fails."""
    made = case(name, DTYPES[dtype], MEDIUM)
    with torch.no_grad():
        graph = capture(made.module, made.args, example_kwargs=made.kwargs).graph
        fast = gaf.optimize(made.module, budget=seconds, strict=True)
        found = _tensors(fast(*made.args, **made.kwargs))
        eager = _tensors(made.module(*made.args, **made.kwargs))
        exact = _exact(made)
    plan, report = fast.plan, fast.report
    ops = _ops(plan)
    left = (n for n in graph.nodes if n.op == "framework")
    return Row(
        name,
        dtype,
        len(graph.nodes),
        _counted(f"{n.attr('target')} ({n.attr('code')})" for n in left),
        round(report.fusion_rate * ops),
        ops,
        _counted(f"{u.op} ({u.code})" for u in report.unfused),
        _counted(_by_torch(plan)),
        _error(found, exact),
        _error(eager, exact),
        report.speedup,
        plan.summary.tuning_seconds,
        plan.summary.trials,
    )


def _ops(plan: Plan) -> int:
    return Sharing(plan.program, plan.layout.folded).ops


def _by_torch(plan: Plan) -> list[str]:
    """Ops of the groups that torch runs at each call, with the reason."""
    sharing = Sharing(plan.program, plan.layout.folded)
    groups = [g for g in plan.cover.groups if isinstance(g, FrameworkGroup) and not g.is_constant]
    return [f"{plan.program.nodes[n].op} ({g.code})" for g in groups for n in sharing.computing(g)]


def _counted(words: object) -> tuple[str, ...]:
    counts = Counter(words)  # type: ignore[call-overload]
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
    return [Row(**{k: tuple(v) if isinstance(v, list) else v for k, v in r.items()}) for r in rows]


def add(record: Path, row: Row) -> None:
    """Appends a row."""
    with record.open("a") as file:
        file.write(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n")
