"""One group of a plan: its ops, its kernel, and why its neighbours are not in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from db.errors import NotFound
from db.store import Store
from kernel_gen.codec import digest
from kernel_gen.codegen.registry import templates
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.candidates import Constraints
from kernel_gen.fusion.neighbours import neighbours, union_of
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.records import Protocol
from kernel_gen.runtime.boxes import node_label, type_label
from kernel_gen.runtime.plan import Kernel
from service.dashboard.numbers import show_us
from service.dashboard.plan_times import total
from service.dashboard.plan_view import GroupRow, PlanView

_MOST_NEIGHBOURS = 12  # each one is lowered to be judged


@dataclass(frozen=True, slots=True)
class OpRow:
    """One op of a program for people; types as in `f32 4×8`."""

    number: int
    op: str
    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    attrs: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A group beside this one. `sentence` says why the two are not one kernel; `code` is empty
    where by their own times they should be."""

    row: GroupRow
    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class GroupView:
    """What there is to know of one group. `task` is the digest under which its tilings were
    tried, None where a page about them would be empty."""

    row: GroupRow
    ops: tuple[OpRow, ...]
    decisions: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]
    more_neighbours: int
    task: str | None

    @property
    def kernel(self) -> Kernel | None:
        return self.row.kernel

    @property
    def pipes(self) -> str:
        """How busy each pipe of a simulated NPU was, the busiest first; empty for others."""
        measured = self.kernel.measurement if self.kernel else None
        shares = sorted(measured.pipes if measured else (), key=lambda pipe: -pipe[1])
        return ", ".join(f"{name} {share:.0%}" for name, share in shares)


def group_view(store: Store, view: PlanView, number: int) -> GroupView:
    """The view of a group by its number in the cover; raises NotFound."""
    plan, groups = view.plan, view.plan.cover.groups
    if not 0 <= number < len(groups):
        raise NotFound(f"plan {plan.id[:16]} has no group {number}: it has {len(groups)}")
    row, program = view.rows[number], plan.program
    near = () if row.code == "constant" else neighbours(plan.cover, number)
    judge = _judge(store, view, number)
    decisions = row.kernel.schedule.decisions if row.kernel else ()
    return GroupView(
        row,
        tuple(op_row(program, n) for n in groups[number].nodes),
        tuple(_decision(d.kind, dict(d.args)) for d in decisions),
        tuple(judge(view.rows[other]) for other in near[:_MOST_NEIGHBOURS]),
        max(0, len(near) - _MOST_NEIGHBOURS),
        _tried(store, view, row),
    )


def op_row(program: Graph, number: int) -> OpRow:
    """A node of a program, by its position."""
    node = program.nodes[number]
    reads, writes = (
        tuple(type_label(program.type_of(value)) for value in values)
        for values in (node.inputs, node.outputs)
    )
    name = "" if node.name == node.op else node.name
    return OpRow(number, node_label(node), name, reads, writes, _attrs(node))


def protocol_text(protocol: Protocol) -> str:
    """How samples were taken, in words."""
    threads = f"{protocol.threads} thread{'s' if protocol.threads != 1 else ''}"
    if protocol.simulated:
        return "simulated"
    return f"{threads}, {protocol.inner} calls a sample, {protocol.cache} caches"


def _attrs(node: Node) -> str:
    hidden = ("target", "args", "code", "sentence") if node.op == "framework" else ()
    said = ", ".join(f"{key}={value}" for key, value in node.attrs if key not in hidden)
    return said if len(said) <= 200 else f"{said[:200]}…"


def _decision(kind: str, args: dict[str, Any]) -> str:
    said = ", ".join(f"{name}={value}" for name, value in args.items())
    return f"{kind}({said})"


def _tried(store: Store, view: PlanView, row: GroupRow) -> str | None:
    """The digest of the kernel's nest if the plan's job has stored trials of it."""
    if row.kernel is None or view.job is None:
        return None
    task = digest(row.kernel.nest)
    return task if task in store.trials.ops(view.job.id) else None


def _judge(store: Store, view: PlanView, number: int) -> Callable[[GroupRow], Neighbour]:
    """Says of a neighbour of the group why it is not in it."""
    plan, group = view.plan, view.plan.cover.groups[number]
    numerics = view.job.request.numerics if view.job else "fast"
    constraints, taking = _constraints(view), tuple(templates(plan.target))

    def judge(other: GroupRow) -> Neighbour:
        beside = plan.cover.groups[other.number]
        union = union_of(plan.program, group, beside, taking, plan.target, constraints, numerics)
        if union.refusal is not None:
            return Neighbour(other, union.refusal.code, union.refusal.sentence)
        known = store.trials.of_group(union.task or "", plan.target.key, limit=1)
        both_us = known[0].median_us if known else None
        apart_us = total([view.rows[number].time.after_us, other.time.after_us])
        return _possible(other, both_us, apart_us, "simulated " if view.simulated else "")

    return judge


def _possible(
    other: GroupRow, both_us: float | None, apart_us: float | None, kind: str
) -> Neighbour:
    """Why the search kept apart what may share a kernel, by the times of the parts alone; `kind`
    is a word before times."""
    if both_us is None:
        tried = "One kernel for both is possible; the search tried none, as it expected no gain."
        return Neighbour(other, "not-faster", tried)
    said = f"One kernel for both is possible: its best trial took {kind}{show_us(both_us)}"
    if apart_us is None:
        return Neighbour(other, "not-faster", f"{said}.")
    said += f", the two apart take {kind}{show_us(apart_us)}"
    if both_us < apart_us:
        said += ". By these times it should be one; the program that ran fastest has them apart"
        return Neighbour(other, "", f"{said}.")
    return Neighbour(other, "not-faster", f"{said}.")


def _constraints(view: PlanView) -> Constraints:
    """What the job's rules asked for. They speak of the plan's program if rewriting the graph
    gives it again, which an older version's rules need not."""
    rules = view.job.request.rules if view.job else ""
    ruled = apply_rules(view.plan.graph, load_rules(rules or None), view.plan.target.kind)
    return ruled.constraints if ruled.program == view.plan.program else Constraints()
