"""Decisions for one phase, and the rows in flight."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.reductions.keep import Kept
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope


@dataclass(frozen=True, slots=True)
class RowConfig:
    """Decisions for one phase.

    `vector` is the vectorised axis (None: scalars). `units` is how many rows (or vectors of rows,
    where the vector axis is an outer one) run side by side; `unroll` how many vectors of the inner
    axis do. `split`: threads share each row's inner loop instead of sharing the rows. `ahead`: how
    many blocks of rows ahead operands are fetched, 0 for none. `skew`: each stage works one row
    behind the stage before it, all of them in one walk.
    """

    vector: str | None
    units: int = 1
    unroll: int = 1
    split: bool = False
    ahead: int = 0
    skew: bool = False
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True, slots=True)
class RowUnit:
    """One row in flight (or one vector of rows): its place, and the scope of its row values.

    `copy`: C expression of the copy of kept values that is this row's; by `number` where empty.
    """

    axes: dict[str, Binding]
    scope: Scope
    number: int
    copy: str = ""
