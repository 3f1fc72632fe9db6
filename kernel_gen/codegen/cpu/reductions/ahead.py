"""Rows fetched ahead: while one row is computed on, operands of a later one are on their way.

Rows of a few KiB are short for the hardware's prefetchers, and memory idles while a row in the
first-level cache goes through exponentials. The fetches stand in the stage that computes most.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.reductions.keep import Kept, is_cheap
from kernel_gen.codegen.cpu.statements.address import Addresses
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest
from kernel_gen.codegen.flat.phases import Phase, closure, reductions, stage_roots
from kernel_gen.ir.loopnest import Compute

_LINE = 64  # bytes
_COSTLY = 8  # instructions of a function, roughly


@dataclass(frozen=True, slots=True)
class Ahead:
    """Fetches in stage `stage`, `rows` further along `axis`, of what `loads` will read."""

    stage: int
    axis: str
    rows: int
    loads: tuple[FlatLoad, ...]

    def fetch(self, nest: FlatNest, addresses: Addresses, cell: Scope, column: int) -> None:
        """Fetches the lines of a vector that starts `column` elements into an unrolled step."""
        here = cell.binding(self.axis)
        assert here is not None, self.axis
        later = cell.inline({self.axis: Binding(f"({here.text} + {self.rows})")})
        for load in self.loads:
            if column * nest.buffers[load.buffer].type.dtype.bytes % _LINE == 0:
                at = addresses.offset(load.at, later)
                cell.add(f"__builtin_prefetch(b{load.buffer} + {at});")


def fetch_ahead(
    nest: FlatNest, phase: Phase, vector: str | None, kept: tuple[Kept, ...], rows: int
) -> Ahead | None:
    """What to fetch `rows` ahead in the phase; None where no load walks rows along `vector`."""
    if not rows or not phase.outer or vector not in phase.inner:
        return None
    axis = phase.outer[-1]
    needed = [_needed(nest, phase, kept, number) for number in range(len(phase.stages))]
    reads = (nest.statements[s] for s in sorted(frozenset().union(*needed)))
    loads = [s for s in reads if isinstance(s, FlatLoad) and _walks(s, axis, vector)]
    if not loads:
        return None
    heaviest = max(range(len(needed)), key=lambda n: (_weight(nest, phase, needed[n]), n))
    return Ahead(heaviest, axis, rows, tuple(dict.fromkeys(loads)))


def _needed(nest: FlatNest, phase: Phase, kept: tuple[Kept, ...], number: int) -> frozenset[int]:
    """Statements that a stage computes; values kept by earlier ones are only loaded."""
    stops = frozenset(reductions(nest)) | {k.statement for k in kept if k.first < number}
    return closure(nest, stage_roots(nest, phase.stages[number]), stops) - stops


def _walks(load: FlatLoad, axis: str, vector: str) -> bool:
    """Whether the load reads neighbours along `vector`, others in each row along `axis`."""
    plain = not load.at.statements() and load.at.is_affine_in(axis) and load.at.is_affine_in(vector)
    return plain and load.at.coeff(vector).const == 1 and bool(load.at.coeff(axis).terms)


def _weight(nest: FlatNest, phase: Phase, statements: frozenset[int]) -> int:
    """Rough instructions per element."""
    live, inner = nest.statement_axes(), frozenset(phase.inner)
    ops = (nest.statements[s] for s in statements if live[s] & inner)
    return sum(1 if is_cheap(s.op) else _COSTLY for s in ops if isinstance(s, Compute))
