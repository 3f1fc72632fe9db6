"""Choosing the axes on which the outputs of a group are computed."""

from __future__ import annotations

import math

from kernel_gen.fusion.affine import ZERO, plain_axis
from kernel_gen.fusion.pull.puller import Puller
from kernel_gen.fusion.views import Indices
from kernel_gen.ir.index import axis_index
from kernel_gen.ir.loopnest import Store
from kernel_gen.ir.types import Dim, Shape


def place_outputs(puller: Puller, outputs: tuple[int, ...]) -> tuple[Store, ...]:
    """One store per output, `Store.buffer` naming the region's value; the largest output goes
    first and opens the axes that the others share."""
    order = sorted(range(len(outputs)), key=lambda i: (-_size(puller, outputs[i]), -i))
    stores: dict[int, Store] = {}
    for position in order:
        value = outputs[position]
        at = _pulled_on_axes(puller, value) or _chosen_axes(puller, puller.shape(value))
        stores[position] = Store(value, at, puller.pull(value, at))
    return tuple(stores[position] for position in range(len(outputs)))


def _size(puller: Puller, value: int) -> int:
    """Elements, counting a symbolic extent as large."""
    return math.prod(d if isinstance(d, int) else 4096 for d in puller.shape(value))


def _pulled_on_axes(puller: Puller, value: int) -> Indices | None:
    """Indices at which `value` has been pulled, if they run over the whole of it."""
    shape = puller.shape(value)
    for at in puller.pulled_at(value):
        if _covers(puller, shape, at):
            return at
    return None


def _covers(puller: Puller, shape: Shape, at: Indices) -> bool:
    axes = [plain_axis(i) for extent, i in zip(shape, at, strict=True) if extent != 1]
    wanted = [extent for extent in shape if extent != 1]
    found = [puller.nest.extents.get(axis or "") for axis in axes]
    return len(set(axes)) == len(axes) and found == wanted


def _chosen_axes(puller: Puller, shape: Shape) -> Indices:
    """Free axes of equal extents, earliest first; new ones where none is left."""
    free = [axis for axis in puller.nest.extents if axis.startswith("i")]

    def choose(extent: Dim) -> str:
        for axis in free:
            if puller.nest.extents[axis] == extent:
                free.remove(axis)
                return axis
        return puller.nest.fresh_axis("i", extent)

    return tuple(ZERO if extent == 1 else axis_index(choose(extent)) for extent in shape)
