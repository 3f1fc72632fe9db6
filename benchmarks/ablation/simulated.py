"""The strategies on a simulated NPU, where times are exact: one search after another, each with the
kernels that the ones before it have measured.

A kernel's simulated time is the same each time it is taken, and a plan's is the sum of its
kernels'. So a strategy that may fuse more starts from all that the narrower ones have found, and
differs from them by its covers and by the kernels that only it needs. Whole programs are run once
for each strategy, at its end. Programs are taken in half precision, as NPUs run them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

import graph_autofusion as gaf
from benchmarks.ablation.kept import Kept, KeptArchive
from benchmarks.ablation.measure import Ablation, Plan, Row
from benchmarks.ablation.programs import Program
from benchmarks.ablation.strategies import Strategy
from graph_autofusion.report import report_of
from kernel_gen.errors import GafError
from kernel_gen.fusion.group import FrameworkGroup
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Budget, JobRequest
from kernel_gen.runtime.boxes import node_label
from kernel_gen.runtime.key import plan_key
from kernel_gen.runtime.plan import Plan as FusedPlan
from tuner.devices.device import Device
from tuner.devices.opening import open_device
from tuner.session import Assignment, Session
from tuner.tasks import computing_nodes


def ablate_simulated(program: Program, how: Plan, tell: Callable[[str], None]) -> Ablation:
    """All strategies of `program`, in order, on one device in this process."""
    torch.manual_seed(0)
    model, inputs = _in_half(*program.build())
    with torch.no_grad():
        graph = gaf.capture(model.eval().requires_grad_(False), inputs)
    device = open_device(how.device)
    kept = Kept(_place(how, graph), resume=how.resume)
    rows: list[Row] = []
    try:
        for strategy in program.strategies:
            if kept.is_missing(strategy.name):
                row = _row(graph, device, strategy, program, how, kept)
                kept.add_row(or_narrower(row, rows[-1]) if rows else row)
            rows.append(kept.rows[strategy.name])
            tell(f"{program.name}: {strategy.name}")
    finally:
        device.close()
    return Ablation(program.name, program.title, program.unit, how.device, tuple(rows))


def _row(
    graph: Graph, device: Device, strategy: Strategy, program: Program, how: Plan, kept: Kept
) -> Row:
    row = Row(strategy.name, None, None, program.article[strategy.name])
    rules = strategy.rules or ""
    before = kept.begin(strategy.name)
    trials = None if how.trials is None else before + how.trials
    request = JobRequest(graph.digest, how.device, Budget(how.budget, trials), rules=rules)
    key = plan_key(graph, device.target, rules=rules)
    try:
        session = Session(
            Assignment(graph, key, request), device, KeptArchive(kept), first_leg_seconds=how.budget
        )
        plan = session.run()
    except GafError as error:
        return replace(row, missing=f"{type(error).__name__}: {error}"[:300])
    report = report_of(plan, "tuned")
    return replace(
        row,
        us=report.measured_us,
        figure=None if report.measured_us is None else program.figure(report.measured_us),
        kernels=len(plan.kernels),
        fusion_rate=report.fusion_rate,
        on_host=_on_host(plan),
    )


def _place(how: Plan, graph: Graph) -> Path | None:
    """Where the rows of a program are kept: other batches lie apart."""
    if how.kept is None:
        return None
    return how.kept / f"{how.device.replace(':', '-')}-{graph.digest[:16]}.jsonl"


def or_narrower(row: Row, narrower: Row) -> Row:
    """The row, or with the plan of the narrower strategy, which this one may run as well, where
    that leaves less to the host, or as much and is faster."""
    if row.us is None or narrower.us is None:
        return row
    left, least = len(row.on_host), len(narrower.on_host)
    if left < least or (left == least and row.us <= narrower.us):
        return row
    return replace(narrower, strategy=row.strategy, article=row.article)


def _on_host(plan: FusedPlan) -> tuple[str, ...]:
    """Computing ops that no kernel runs, at no simulated time."""
    program = plan.program
    return tuple(
        node_label(program.nodes[node])
        for group in plan.cover.groups
        if isinstance(group, FrameworkGroup) and not group.is_constant
        for node in computing_nodes(program, group.nodes)
    )


def _in_half(model: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return model.half(), tuple(x.half() if x.is_floating_point() else x for x in inputs)
