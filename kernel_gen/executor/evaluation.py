"""A nest with its operands, and how its floats are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.executor.grid import reduce_cut
from kernel_gen.executor.noise import Noise
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import LoopNest, Reduce, operands
from kernel_gen.ir.rounding import flushed, ranged
from kernel_gen.ir.types import Dim

Array = NDArray[Any]


@dataclass(frozen=True)
class Evaluation:
    """A nest with its operands, and how floats are computed (see `execute`)."""

    nest: LoopNest
    operands: Sequence[Array]
    symbols: Mapping[str, int]
    precision: str
    noise: Noise | None

    @cached_property
    def live(self) -> tuple[tuple[str, ...], ...]:
        return self.nest.statement_axes()

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """The operands of each statement."""
        return tuple(operands(statement) for statement in self.nest.statements)

    @cached_property
    def axes(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.nest.axes)

    @cached_property
    def _cuts(self) -> dict[tuple[Reduce, tuple[int, ...]], tuple[str, int] | None]:
        return {}

    def cut(self, reduce: Reduce, extents: Mapping[str, int]) -> tuple[str, int] | None:
        """`reduce_cut`, found once for all blocks of the same `extents`."""
        key = (reduce, tuple(extents.values()))
        if key not in self._cuts:
            self._cuts[key] = reduce_cut(self.nest, reduce, self.live, extents)
        return self._cuts[key]

    def known(self, extent: Dim) -> int:
        return extent if isinstance(extent, int) else self.symbols[extent.name]

    def held(self, dtype: DType) -> np.dtype[np.generic]:
        """The NumPy type in which values of `dtype` are held."""
        wide = self.precision == "f64" and dtype.is_float
        return np.dtype(np.float64) if wide else numpy_dtype(dtype)

    def kept(self, value: Array, dtype: DType) -> Array:
        """A result in the type in which it is held; float64 keeps the range of fp32."""
        made = value.astype(self.held(dtype), copy=False)
        if not dtype.is_float or self.precision == "f32":
            return made
        return flushed(made) if self.precision == "flushed" else ranged(made, dtype)
