"""`Plan`: the stored answer of a search: cover, schedules, sources, objects, measurements.

Values of a plan are numbered like `Plan.program.values`. A plan runs its segments in order; a
compiled segment is a run of kernels behind one C call, a framework segment is nodes that torch
runs.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

from kernel_gen.codegen.source import KernelSource
from kernel_gen.fusion.group import FrameworkGroup as FrameworkGroup
from kernel_gen.fusion.group import FusionGroup as FusionGroup
from kernel_gen.fusion.group import FusionPlan as FusionPlan
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Budget, Measurement
from kernel_gen.runtime.key import PlanKey
from kernel_gen.schedule.schedule import Schedule

SCHEMA_VERSION = 1
UNMEASURED = "unmeasured"  # of an op that has kernels, of which the search measured none


@dataclass(frozen=True, slots=True)
class Kernel:
    """One compiled group: what it computes, how, and what was measured.

    `operands` maps the nest's buffers to graph values, in order. `ops` names the fused ops for
    people. `measured_us` is the kernel alone, None where only the whole program was timed.
    """

    group: FusionGroup
    operands: tuple[int, ...]
    nest: LoopNest
    schedule: Schedule
    source: KernelSource
    ops: tuple[str, ...]
    measurement: Measurement | None = None

    @property
    def sources(self) -> dict[str, str]:
        """File name -> text."""
        return dict(self.source.files)


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a plan came about, and what it needs; checked before anything is loaded.

    `requires` holds CPU feature names ("avx512f", …) that the caller's machine must have.
    """

    compiler: str
    flags: tuple[str, ...]
    generator: str
    abi: int
    torch: str
    libc: str
    requires: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A built shared object. `data` are its bytes, `sha256` their digest (hexadecimal)."""

    name: str
    sha256: str
    data: bytes

    @staticmethod
    def read(path: Path) -> Artifact:
        """The object in a file."""
        data = path.read_bytes()
        return Artifact(path.name, hashlib.sha256(data).hexdigest(), data)


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a run: kernels behind one C call, or nodes that torch runs.

    `kernels` are positions in `Plan.kernels`, in execution order, and `framework` is None; or
    `kernels` is empty and `framework` is the position of a FrameworkGroup in `Plan.cover.groups`.
    """

    kernels: tuple[int, ...] = ()
    framework: int | None = None


@dataclass(frozen=True, slots=True)
class ArenaSlot:
    """Where an intermediate value lives in the arena, in bytes; slots of one time are disjoint."""

    value: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How the built object wants to be called. Recorded, not derived again when a plan is read:
    the offsets are compiled into the object, and a later version may plan memory otherwise.

    `constants` are the values whose storage `gaf_create` takes, in that order. `folded` are nodes
    of the program that depend on constants only; torch runs them once, when constants are bound.
    `buffers` are the values that kernels write and the caller provides the memory of: results, and
    what torch reads. All other values that kernels write live in the arena. `overwrites` are pairs
    of a value and the input that it replaces, in whose memory it is made: of a buffer by its
    kernel, of any other by torch's operator in place.
    """

    segments: tuple[Segment, ...] = ()
    constants: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    buffers: tuple[int, ...] = ()
    overwrites: tuple[tuple[int, int], ...] = ()
    arena: tuple[ArenaSlot, ...] = ()
    arena_bytes: int = 0  # slots only; scratch follows, `gaf_arena_bytes` says how much in all
    packed_bytes: int = 0  # what `gaf_create` allocates for packed constants


@dataclass(frozen=True, slots=True)
class Unfused:
    """An op that shares no kernel, and why."""

    op: str
    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class SearchSummary:
    """What the search saw. `baseline_us`: captured composites run by torch, interleaved with
    `measured_us` (the plan). `unfused_us`: our best kernel per composite, in such a run; None if it
    was in none. `budget_trials`: None where only time was limited."""

    baseline_us: float
    measured_us: float
    unfused_us: float | None
    improved: bool
    trials: int
    failures: int
    tuning_seconds: float
    budget_seconds: float
    unfused: tuple[Unfused, ...] = ()
    rules_fired: tuple[str, ...] = ()
    budget_trials: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything needed to run, explain and rebuild a tuned program.

    `graph` is the program as submitted (its digest is in the key). `program` is the same program
    after the search's rewrites (composites expanded by rule, say), with the same inputs and outputs
    in the same order; `cover`, `kernels` and all value numbers speak of `program`.
    """

    key: PlanKey
    graph: Graph
    program: Graph
    target: Target
    cover: FusionPlan
    kernels: tuple[Kernel, ...]  # in the order of the FusionGroups of `cover`
    artifacts: tuple[Artifact, ...]
    provenance: Provenance
    summary: SearchSummary
    layout: Layout = Layout()

    @property
    def id(self) -> str:
        """Content digest of plan.json, hexadecimal: equal plans have equal ids."""
        from kernel_gen.runtime.plan_text import plan_digest

        return plan_digest(self)

    @property
    def is_unmeasured(self) -> bool:
        """Whether its search measured no kernel of ops that have some."""
        return not self.kernels and any(op.code == UNMEASURED for op in self.summary.unfused)

    def is_outbid(self, budget: Budget) -> bool:
        """Whether a search with `budget` should replace this plan: its own search measured no
        kernel of ops that have some, and the budget lets one go on longer or try more."""
        summary = self.summary
        if not self.is_unmeasured:
            return False
        limit = math.inf if budget.trials is None else budget.trials
        longer = budget.seconds > summary.budget_seconds and limit > summary.trials
        more = summary.budget_trials is not None and limit > summary.budget_trials
        return budget.seconds >= summary.budget_seconds and (longer or more)
