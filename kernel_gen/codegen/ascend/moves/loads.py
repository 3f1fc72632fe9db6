"""Operands of a phase on their way in: which queue they come through, and which are read once for
all tasks."""

from __future__ import annotations

import re

from kernel_gen.codegen.ascend.instructions.layout import MOST_QUEUES
from kernel_gen.codegen.ascend.instructions.scalar_work import ScalarWork
from kernel_gen.codegen.ascend.instructions.steps import Lanes, Value, steps_of
from kernel_gen.codegen.ascend.instructions.writer import HELD, Writer
from kernel_gen.codegen.ascend.moves.addresses import Addresses, Place
from kernel_gen.codegen.ascend.moves.indices import TileReads
from kernel_gen.codegen.ascend.moves.memory import Ask, Reader
from kernel_gen.codegen.ascend.moves.stores import Shared
from kernel_gen.codegen.ascend.tiles.tasks import Tile
from kernel_gen.codegen.flat.linear import FlatLoad
from kernel_gen.ir.dtype import DType


class Loads:
    """Loads of one phase. `queues` counts the queues that they would like to have."""

    def __init__(self, writer: Writer, tile: Tile, addresses: Addresses) -> None:
        self._w, self._tile, self._places = writer, tile, addresses.places
        self._reader = Reader(TileReads(writer, addresses, tile.roles.row, tile.roles.col))
        self._head_known = False
        self._once_queue: int | None = None
        self.queues = 0

    @property
    def scalar_work(self) -> ScalarWork:
        """What the scalar unit does for these loads."""
        return self._reader.scalar_work

    def same_for_all(self, load: FlatLoad) -> bool:
        """Whether all tasks read the same: whole rows of a vector along the columns."""
        roles = self._tile.roles
        whole = roles.whole and roles.is_inner(roles.col)
        plain = not load.guards and not load.at.statements() and load.at.is_affine_in(roles.col)
        return whole and plain and load.at.axes() == {roles.col} and self.queues < MOST_QUEUES - 1

    def once(self, load: FlatLoad, lanes: Lanes) -> Value:
        """A load before the tasks, with the extents that it has there."""
        with self._w.head():
            if not self._head_known:
                extent = self._tile.extent(self._tile.roles.col)
                self._tile.declare(f"const int32_t allCols = static_cast<int32_t>({extent});")
            self._head_known = True
            made = self.loaded(load, lanes, once=True)
            for step in steps_of(self._w.body):
                step.text = re.sub(r"\bcn\b", "tileCols", re.sub(r"\bcols\b", "allCols", step.text))
                for value in step.writes:
                    value.once = value.home == "in"
        return made

    def loaded(self, load: FlatLoad, lanes: Lanes, *, once: bool = False) -> Value:
        """A tile of a load in the type in which its values are held."""
        stored: DType = self._tile.nest.buffers[load.buffer].type.dtype
        v = self._read(load, self._places[load.buffer], lanes, once=once)
        return self._reader.converted(v, stored, load.dtype)

    def shared(self, spot: Shared, dtype: DType, lanes: Lanes) -> Value:
        """A tile of what an earlier phase has left in the workspace."""
        return self._read(FlatLoad(-1, spot.at, dtype), spot.place, lanes)

    def _read(self, load: FlatLoad, place: Place, lanes: Lanes, *, once: bool = False) -> Value:
        """A tile of a load; loads beyond the last queue share it, each copied away at once, and so
        do those before the tasks that are converted at once."""
        last = MOST_QUEUES - 1
        queue = min(self.queues, last)
        converts = once and place.ctype != HELD[load.dtype]
        if converts and self._once_queue is not None:
            queue = self._once_queue
        v = self._reader.load(Ask(load, place, lanes, self._tile.bound, queue))
        if v.home == "in" and queue == self._once_queue:
            return v
        if v.home == "in":
            self._once_queue = queue if converts and queue != last else self._once_queue
            self.queues += 1
            if queue == last:
                return self._w.copied(v)
        return v
