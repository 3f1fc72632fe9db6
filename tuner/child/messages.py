"""What a device and its child process say to each other, and what a device is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernel_gen.codegen.source import KernelSource
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import ValueDomain
from kernel_gen.records import Failure, Measurement, Stage
from tuner.checks.compare import Tolerance
from tuner.child.protocol import QUICK, Limits
from tuner.child.shared_memory import BlockSpec


@dataclass(frozen=True, slots=True)
class NestCheck:
    """How candidates for one nest are checked: what a device derives operands and reference from.

    `domains` has one entry per buffer of `nest` (outputs' are ignored). Equal checks share operands
    and reference. `narrow_products`: the device rounds what it multiplies to the narrow type that
    the nest's tensors have, as a program does that multiplies in a kernel of its own.
    """

    key: str  # the nest's digest
    nest: LoopNest
    domains: tuple[ValueDomain, ...]
    strict: bool = False
    seed: int = 0
    narrow_products: bool = False


@dataclass(frozen=True, slots=True)
class KernelTask:
    """Build, check and time one candidate. `timeout_s` counts from the start of its execution.

    `template` and `point` say which candidate it is (a recorded search is replayed by them).
    """

    check: NestCheck
    source: KernelSource
    template: str = ""
    point: tuple[tuple[str, int | str], ...] = ()
    incumbent_us: float | None = None
    limits: Limits = QUICK
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of a task; `build_seconds` is its share of its batch's building."""

    result: Measurement | Failure
    build_seconds: float = 0.0


UNTRIED = Failure(Stage.CANCELLED, "out-of-time", "the batch's time was up before its turn")


@dataclass(frozen=True, slots=True)
class CheckSet:
    """One set of operands with its reference, as positions of arrays in a block.

    `ambiguous` holds, per output, the position of a bool mask or None; `tolerances` is per output.
    """

    inputs: tuple[int, ...]
    expected: tuple[int, ...]
    ambiguous: tuple[int | None, ...]
    tolerances: tuple[Tolerance, ...]


@dataclass(frozen=True, slots=True)
class OpenCheck:
    """To the child: map this block (its memfd follows) and keep it under `key`."""

    key: str
    nest: LoopNest
    block: BlockSpec
    sets: tuple[CheckSet, ...]


@dataclass(frozen=True, slots=True)
class RunKernel:
    """To the child: load `source.entry` from the shared object at `path`, check it, time it.

    `timer_path` is the built timing loop (`kernel_gen.runtime.timer`).
    """

    key: str
    path: str
    timer_path: str
    source: KernelSource
    threads: int
    limits: Limits
    incumbent_us: float | None


@dataclass(frozen=True, slots=True)
class RunSimulated:
    """To the child: load `source.entry` from the object at `path`, and run it on the simulator with
    all rules of the chip, which also says how long it takes. One that takes longer than `limit_us`
    is timed only."""

    key: str
    path: str
    source: KernelSource
    target: Target
    limit_us: float | None = None


@dataclass(frozen=True, slots=True)
class RunOnNpu:
    """To the child: load `source.entry` from the object at `path`, check it on NPU `device` through
    the ACL at `library`, time it. `cores` of the chip stand in the measurement."""

    key: str
    path: str
    source: KernelSource
    library: Path
    device: int
    cores: int
    limits: Limits
    incumbent_us: float | None


@dataclass(frozen=True, slots=True)
class Reached:
    """From the child: it has entered this stage (a crash or hang from now on belongs to it)."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class Done:
    """From the child: the request's result."""

    result: object


Report = Callable[[Stage], None]
"""Tells the device which stage the child enters."""
