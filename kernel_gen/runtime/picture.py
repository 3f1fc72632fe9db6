"""Pictures of programs and plans as files: by Graphviz while that is quick, else laid out here."""

from __future__ import annotations

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.dot import plan_times, plan_to_dot, render, to_dot
from kernel_gen.runtime.large_picture import large_svg
from kernel_gen.runtime.plan import Plan

LARGE_NODES = (
    600  # Graphviz takes some 2 s for as many ops with residual sums, and 9 for twice them
)


def plan_picture(plan: Plan, kind: str = "svg") -> bytes:
    """The program of a plan with its cover as "svg" or "png".

    Raises InvalidInput for a PNG of a large program, Unavailable where Graphviz is needed and
    missing.
    """
    if not _is_large(plan.program, kind):
        return render(plan_to_dot(plan), kind)
    return large_svg(plan.program, plan.cover, plan_times(plan))


def graph_picture(graph: Graph, kind: str = "svg") -> bytes:
    """A bare program; errors as of `plan_picture`."""
    return large_svg(graph) if _is_large(graph, kind) else render(to_dot(graph), kind)


def _is_large(program: Graph, kind: str) -> bool:
    count = len(program.nodes)
    if count > LARGE_NODES and kind == "png":
        raise InvalidInput(f"a picture of {count} ops would be illegible as .png; use .svg or .dot")
    return count > LARGE_NODES
