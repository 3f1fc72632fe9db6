"""Groups of nodes that share a kernel, and covers of a program by groups."""

from __future__ import annotations

from dataclasses import dataclass

CONSTANT_CODE = "constant"


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """Nodes of a graph that become one kernel.

    `nodes` are indices into `Graph.nodes`, ascending. `inputs` and `outputs` are graph values; a
    node may recur in another group (recomputation), but each value is an output of one group only.
    """

    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FrameworkGroup:
    """Nodes that torch runs, with the reason: code and sentence of a Refusal.

    The code `CONSTANT_CODE` marks nodes that depend on constants only: the runtime runs them once,
    when the plan is bound to its constants, and treats their outputs as constants from then on.
    """

    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    code: str
    sentence: str

    @property
    def is_constant(self) -> bool:
        """Whether the group runs once, at bind time."""
        return self.code == CONSTANT_CODE


Group = FusionGroup | FrameworkGroup


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """A cover of a graph in execution order: every needed value is produced before it is read."""

    groups: tuple[Group, ...]
