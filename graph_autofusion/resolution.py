"""The answer of a plan source, and what a plan source is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.plan import Plan

Accepts = Callable[[Plan], bool]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A plan and where it came from ("hit", "compatible", "tuned"), or the reason for none.

    Without a plan `cache` is "pending" (the service's `job` works on it) or "fallback", which the
    caller's options may ask for (`is_asked_for`). With one `reason` is what speaks against it.
    """

    plan: Plan | None
    cache: str
    reason: str = ""
    job: str = ""
    is_asked_for: bool = False


class PlanSource(Protocol):
    """Where plans come from; `Resolver` is the usual one."""

    def resolve(self, graph: Graph, accepts: Accepts) -> Resolution:
        """The plan for `graph`, or why there is none; may take as long as a search.

        `accepts` is asked whether a plan made for another target (a compatible one) is worth using.
        """
        ...

    def follow(self, job: str, graph: Graph, accepts: Accepts) -> Resolution | None:
        """What the job of a pending program has found; None as long as it works."""
        ...
