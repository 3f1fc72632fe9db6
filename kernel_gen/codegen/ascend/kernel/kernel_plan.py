"""A kernel before it is text: its sections, tensors in the workspace, and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_gen.codegen.ascend.cube.text import CubePhase
from kernel_gen.codegen.ascend.phases.phase import PhaseText
from kernel_gen.codegen.ascend.tiles.split_reduce import PART
from kernel_gen.codegen.flat.linear import FlatNest, Poly
from kernel_gen.ir.loopnest import Buffer, BufferRole
from kernel_gen.ir.types import Sym


@dataclass(frozen=True, slots=True)
class PhaseVariants:
    """A phase as text, whole or walked; the tiling function picks one by its key."""

    number: int
    variants: tuple[PhaseText, ...]
    synchronised: bool  # later phases read what this one leaves in the workspace
    nest: FlatNest
    align: int
    unit_lanes: int


@dataclass(frozen=True, slots=True)
class WorkTensor:
    """A tensor in the workspace, `offset` bytes from its start."""

    name: str
    ctype: str
    offset: Poly


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """A kernel before it is text. `nest` is for the header; `buffers` are the entry's arguments."""

    nest: FlatNest
    buffers: tuple[Buffer, ...]
    dims: tuple[str, ...]
    derived: Mapping[str, Poly]
    sections: tuple[PhaseVariants | CubePhase, ...]
    work: tuple[WorkTensor, ...]
    workspace: Poly
    in_chunks: bool = False  # vector phases run over chunks of the product's rows

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of all extents that the kernel is told."""
        return (*self.dims, *self.derived, *([self.parts] if self.parts else []))

    @property
    def parts(self) -> str | None:
        """The symbol of the number of parts of a split reduction, None where none is split."""
        nests = [s.nest for s in self.sections if isinstance(s, PhaseVariants)]
        split = any(PART in nest.axes for nest in nests)
        return PART.extent.name if split and isinstance(PART.extent, Sym) else None

    @property
    def has_cube(self) -> bool:
        return any(isinstance(s, CubePhase) for s in self.sections)

    @property
    def has_vector(self) -> bool:
        return any(isinstance(s, PhaseVariants) for s in self.sections)


def buffer_names(buffers: Sequence[Buffer]) -> list[str]:
    """x0, x1 … for operands and y0, y1 … for results."""
    names: list[str] = []
    counts = {"x": 0, "y": 0}
    for buffer in buffers:
        letter = "y" if buffer.role is BufferRole.OUTPUT else "x"
        names.append(f"{letter}{counts[letter]}")
        counts[letter] += 1
    return names
