"""The interface of a template: one way to turn a nest into a kernel for one kind of device.

A template says which nests it takes, which parameters can be chosen (`space`), and turns a point
of that space into a `Schedule`. Generating code from a schedule is a pure function, so a stored
plan rebuilds its kernels without a search.
"""

from __future__ import annotations

from typing import Protocol

from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Point, Schedule, Space


class Template(Protocol):
    """One way to turn a nest into a kernel for one kind of device. Stateless."""

    @property
    def name(self) -> str: ...

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        """None if this template takes the nest, else why not."""

    def space(self, nest: LoopNest, target: Target) -> Space:
        """What can be chosen; raises InvalidGraph if the nest is refused."""

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        """The decisions of a point; a Refusal where choices do not go together."""

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        """The kernel's source; `symbol` is its C name. Deterministic."""
