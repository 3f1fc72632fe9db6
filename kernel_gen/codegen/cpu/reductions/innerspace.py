"""The inner axes of a phase in the order in which they are walked, and places in that space."""

from __future__ import annotations

import math

from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.errors import InternalError


class InnerSpace:
    """`axes`: the inner axes, the `vector` axis last; its extent counts in whole vectors of `lanes`
    elements."""

    def __init__(
        self, nest: FlatNest, inner: tuple[str, ...], vector: str | None, lanes: int
    ) -> None:
        self._nest, self._vector, self._lanes = nest, vector, lanes
        others = tuple(axis for axis in inner if axis != vector)
        self.axes = others if vector is None or vector not in inner else (*others, vector)

    @property
    def elems(self) -> int:
        """Its size; raises InternalError where an extent is symbolic."""
        return math.prod(map(self._padded, self.axes))

    def position(self, cell: Scope) -> str:
        """Where a cell lies, as a C expression in elements."""
        text = "0"
        for axis in self.axes:
            binding = cell.binding(axis)
            if binding is None:
                raise InternalError(f"axis {axis} is not bound here")
            before = f"{text} * {self._padded(axis)} + " if text != "0" else ""
            text = f"({before}{binding.text})"
        return text

    def _padded(self, axis: str) -> int:
        extent = self._nest.extent(axis)
        if not isinstance(extent, int):
            raise InternalError(f"axis {axis}: values in scratch need a known extent")
        return -(-extent // self._lanes) * self._lanes if axis == self._vector else extent
