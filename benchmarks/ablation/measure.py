"""Tunes a program under each strategy and times the plans, interleaved."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import graph_autofusion as gaf
from benchmarks.ablation.programs import Program
from benchmarks.ablation.strategies import Strategy
from benchmarks.suite.correctness import Expected, judge
from benchmarks.suite.peers.work import leaves
from benchmarks.suite.worker import time_once
from kernel_gen.errors import GafError

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy. `us` is the median per call (on a simulated device the sum of the kernels'
    times), `figure` the same in the program's unit; `wrong` and `missing` say what failed;
    `on_host` are ops without a kernel on a simulated device, where they take no time."""

    strategy: str
    us: float | None
    figure: float | None
    article: float
    kernels: int = 0
    fusion_rate: float = 0.0
    spread: float = 0.0
    wrong: str = ""
    missing: str = ""
    on_host: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ablation:
    """One program on one device. `eager_us` is the framework's median, None on a simulator."""

    program: str
    title: str
    unit: str
    device: str
    rows: tuple[Row, ...]
    eager_us: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure: seconds and new trials of search per strategy, where plans lie, rounds of
    timing; on a simulated device, the folder where rows and kernels are kept and whether to go on
    with what lies there."""

    device: str = "cpu"
    budget: float = 60.0
    store: str | None = None
    rounds: int = 15
    trials: int | None = None
    kept: Path | None = None
    resume: bool = False


def ablate(program: Program, how: Plan, tell: Tell = lambda _: None) -> Ablation:
    """All strategies of `program`. Plans that the store has are used; Ctrl-C in between leaves
    those that were found there."""
    torch.manual_seed(0)
    model, inputs = program.build()
    model = model.eval().requires_grad_(False)
    with torch.no_grad():
        want = tuple(leaves(model(*inputs)))
        tuned = []
        for strategy in program.strategies:
            tuned.append(_tuned(model, inputs, strategy, program, how, want))
            tell(f"{program.name}: {strategy.name}")
        eager_us, rows = _timed(model, inputs, tuned, program, how)
        tell(f"{program.name}: timed")
    return Ablation(program.name, program.title, program.unit, how.device, rows, eager_us)


_Tuned = tuple[Row, gaf.OptimizedModule | None]


def _tuned(
    model: nn.Module, inputs: tuple[Tensor, ...], strategy: Strategy, program: Program, how: Plan,
    want: tuple[Tensor, ...],
) -> _Tuned:  # fmt: skip
    row = Row(strategy.name, None, None, program.article[strategy.name])
    try:
        optimized = gaf.optimize(
            model, inputs, device=how.device, budget=gaf.Budget(how.budget, how.trials),
            store=how.store, rules=strategy.rules, strict=True,
        )  # fmt: skip
        report, plan = optimized.report, optimized.plan
    except GafError as error:
        return replace(row, missing=f"{type(error).__name__}: {error}"[:300]), None
    row = replace(row, kernels=len(plan.kernels), fusion_rate=report.fusion_rate)
    verdict = judge(leaves(optimized(*inputs)), Expected(want, want))
    return replace(row, wrong=verdict.wrong), optimized


def _timed(
    model: nn.Module, inputs: tuple[Tensor, ...], tuned: Sequence[_Tuned], program: Program,
    how: Plan,
) -> tuple[float, tuple[Row, ...]]:  # fmt: skip
    calls: dict[str, Callable[[], Any]] = {"eager": lambda: model(*inputs)}
    for row, optimized in tuned:
        if optimized is not None:
            calls[row.strategy] = lambda run=optimized: run(*inputs)  # type: ignore[misc]
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(how.rounds):
        for name, call in calls.items():
            samples[name].append(time_once(call)["us"])
    rows = tuple(_with_time(row, samples.get(row.strategy), program) for row, _ in tuned)
    return statistics.median(samples["eager"]), rows


def _with_time(row: Row, samples: list[float] | None, program: Program) -> Row:
    if samples is None:
        return row
    us = statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4) if len(samples) > 3 else (us, us, us)
    return replace(row, us=us, figure=program.figure(us), spread=(high - low) / us)
