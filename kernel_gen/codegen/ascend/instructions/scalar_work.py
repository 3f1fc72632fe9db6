"""What the scalar unit does for a tile, counted while its text is written."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from kernel_gen.codegen.ascend.instructions.steps import Lanes

_FAR = re.compile(r"(?<!@)\.GetValue\(")
_NEAR = re.compile(r"@\.GetValue\(|\.SetValue\(")
_COPY = 40.0  # cycles of a copy that moves one row: its issue, and its address (estimate)


@dataclass(frozen=True, slots=True)
class ScalarRates:
    """Cycles of a chip's scalar unit: `far` of a read of global memory, `near` of an access to the
    unified buffer, `copy` of the first bytes of a copy that it waits for."""

    far: float
    near: float
    copy: float


@dataclass(slots=True)
class ScalarWork:
    """Accesses for each element of some lanes of a tile; `copies` are made one for each row, and
    `waits` for one to end once for each tile."""

    far: Counter[Lanes] = field(default_factory=Counter)
    near: Counter[Lanes] = field(default_factory=Counter)
    copies: int = 0
    waits: int = 0

    def add(self, text: str, lanes: Lanes) -> None:
        """Counts the accesses in a line that is run for each element of `lanes`."""
        self.far[lanes] += len(_FAR.findall(text))
        self.near[lanes] += len(_NEAR.findall(text))

    def cycles(self, rates: ScalarRates) -> tuple[float, float, float, float]:
        """Cycles for each tile, and for each row, each column and each lane of one. A copy that
        one waits for ends those before it, too: half of its time again is lost to them."""
        rows, cols, lanes = (
            rates.far * self.far[kind] + rates.near * self.near[kind]
            for kind in (Lanes.ROW, Lanes.COL, Lanes.FULL)
        )
        return 1.5 * rates.copy * self.waits, rows + _COPY * self.copies, cols, lanes
