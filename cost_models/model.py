"""The interface of a cost model: it screens candidates before anything is built."""

from __future__ import annotations

from typing import Protocol

from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule


class CostModel(Protocol):
    """Predicts the time of one kernel. Stateless or immutable: one instance serves all threads."""

    @property
    def name(self) -> str: ...

    def predict_us(self, nest: LoopNest, schedule: Schedule | None, target: Target) -> float:
        """Microseconds of one call with warm caches, positive and finite.

        Without a schedule: what a good one should reach.
        """
