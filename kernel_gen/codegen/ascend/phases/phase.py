"""One phase of a kernel: tasks over tiles, stages within a task, and the statements of each stage.

for each task (this core's share)            rows x cols tile, other outer axes fixed
    stage 0, walked or whole: load, compute, reduce
    stage 1: …
    stores
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_gen.codegen.ascend.instructions.layout import MOST_QUEUES, Layout, lay_out
from kernel_gen.codegen.ascend.instructions.reduction import Reductions
from kernel_gen.codegen.ascend.instructions.scalar_work import ScalarWork
from kernel_gen.codegen.ascend.instructions.steps import (
    Lanes,
    Value,
    lanes_of,
)
from kernel_gen.codegen.ascend.instructions.unused import drop_unused
from kernel_gen.codegen.ascend.instructions.writer import HELD, Const, Writer
from kernel_gen.codegen.ascend.moves.addresses import Addresses, Place
from kernel_gen.codegen.ascend.moves.loads import Loads
from kernel_gen.codegen.ascend.moves.positions import Positions
from kernel_gen.codegen.ascend.moves.stores import Shared, Stores
from kernel_gen.codegen.ascend.phases.values import Values
from kernel_gen.codegen.ascend.tiles.roles import Roles, phase_accesses
from kernel_gen.codegen.ascend.tiles.split_reduce import PART
from kernel_gen.codegen.ascend.tiles.tasks import Tile
from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.codegen.flat.phases import Stage, closure, reductions
from kernel_gen.errors import InternalError
from kernel_gen.ir.loopnest import Reduce


@dataclass(slots=True)
class PhaseText:
    """A phase laid out: the lines of its body and its rooms in UB."""

    roles: Roles
    layout: Layout
    splits_rows: bool
    splits_cols: bool
    scalar_work: ScalarWork


class PhaseEmitter:
    """Writes the body of one phase."""

    def __init__(
        self,
        nest: FlatNest,
        roles: Roles,
        places: Mapping[int, Place],
        shared: Mapping[int, Shared],
        unit_lanes: int,
        depth: int,
    ) -> None:
        self.nest, self.roles, self.places, self.shared = nest, roles, places, shared
        self.unit_lanes, self.depth = unit_lanes, depth
        self._w = Writer(unit_lanes)
        self._tile = Tile(self._w, nest, roles, unit_lanes)
        self._addresses = Addresses(nest, places)
        self._loads = Loads(self._w, self._tile, self._addresses)
        self._stores = Stores(self._w, self._tile, self._addresses)
        positions = Positions(self._w, self._addresses, roles, self._loads.scalar_work)
        self._values = Values(self._w, self._tile, self._loads, positions, shared)
        self._folds = Reductions(self._w)

    def run(self, indent: str) -> PhaseText:
        with self._w.loop("for (int64_t task = first; task < last; task++) {"):
            self._tile.open()
            for stage in self.roles.phase.stages:
                self._stage(stage)
            self._stores.flush()
        self._queues_of_loads()
        drop_unused(self._w.body)
        return PhaseText(
            self.roles,
            lay_out(self._w.body, self.depth, indent),
            self._tile.is_task(self.roles.row),
            self._tile.is_task(self.roles.col),
            self._loads.scalar_work,
        )

    # ---- stages --------------------------------------------------------------------------------

    def _stage(self, stage: Stage) -> None:
        reduces = [(r, self._reduce(r)) for r in stage.reduces]
        if not self.roles.walked or not (reduces or stage.stores):
            for number, reduce in reduces:
                self._whole(number, reduce)
            self._store_all((*stage.stores, *stage.row_stores))
        else:
            self._walked(stage, reduces)
            self._store_all(stage.row_stores)
        for number, _ in reduces:
            if number in self.shared:
                self._stores.share(self.shared[number], self._shared_value(number))

    def _reduce(self, number: int) -> Reduce:
        statement = self.nest.statements[number]
        if not isinstance(statement, Reduce):
            raise InternalError(f"statement {number} is no plain reduction")
        return statement

    def _over(self, reduce: Reduce) -> tuple[bool, bool]:
        return self.roles.row in reduce.axes, self.roles.col in reduce.axes

    def _full_operand(self, reduce: Reduce) -> Value:
        """The reduced value with lanes for the reduced axes of the tile."""
        held = HELD[reduce.dtype]
        v = self._values.of(reduce.arg)
        lanes = v.lanes if isinstance(v, Value) else Lanes.ONE
        over = self._over(reduce)
        wanted = lanes_of(lanes.axes[0] or over[0], lanes.axes[1] or over[1])
        if isinstance(v, Const):
            return self._w.constant(v.value, held, wanted)
        return self._w.spread(v, wanted)

    def _whole(self, number: int, reduce: Reduce) -> None:
        v = self._full_operand(reduce)
        with self._w.noted(_over_axes(reduce)):
            made = self._folds.tile(reduce.op, v, self._over(reduce), "rows", "cols")
            self._values.put(number, made, reduce.dtype)

    def _walked(self, stage: Stage, reduces: list[tuple[int, Reduce]]) -> None:
        """Steps over the inner axes; sums of tiles are kept by lane and folded at the end."""
        self._before_loops(stage)
        totals = {number: self._total(reduce) for number, reduce in reduces}
        self._walk(0, stage, totals)
        for number, reduce in reduces:
            rows = "tileHeight" if self.roles.row in self.roles.walked else "rows"
            cols = "tileWidth" if self.roles.col in self.roles.walked else "cols"
            made = self._folds.tile(
                reduce.op, totals[number], self._over(reduce), rows, cols, self._fold_lanes()
            )
            self._values.put(number, made, reduce.dtype)

    def _fold_lanes(self) -> str:
        """Lanes of a column vector outside of the loops."""
        return "tileCols" if self.roles.col in self.roles.walked else "cn"

    def _total(self, reduce: Reduce) -> Value:
        live = self._values.live[reduce.arg] | set(reduce.axes)
        lanes = lanes_of(self.roles.row in live, self.roles.col in live)
        return self._folds.accumulator(reduce.op, reduce.dtype, HELD[reduce.dtype], lanes)

    def _before_loops(self, stage: Stage) -> None:
        """What does not depend on the walked axes is computed once, before the loops."""
        roots = [self._reduce(r).arg for r in stage.reduces]
        roots += [self.nest.stores[k].statement for k in stage.stores]
        for number in sorted(closure(self.nest, roots, frozenset(reductions(self.nest)))):
            s = self.nest.statements[number]
            known = isinstance(s, Reduce) and self._values.is_known_before_loops(number)
            walked = set(self.roles.walked) & self._values.live[number]
            if not (walked or known or self._is_index(number)):
                self._values.of(number)

    def _is_index(self, number: int) -> bool:
        """Whether a statement serves as an index only, which the scalar unit reads itself."""
        return number in self._indices()

    def _indices(self) -> frozenset[int]:
        used = set[int]()
        for access in phase_accesses(self.nest, self.roles.phase):
            used |= access.at.statements()
        return frozenset(used)

    def _walk(self, position: int, stage: Stage, totals: Mapping[int, Value]) -> None:
        roles, walked = self.roles, self.roles.walked
        if position == len(walked):
            self._tile.counts_in_loop()
            for number, total in totals.items():
                reduce = self._reduce(number)
                v = self._full_operand(reduce)
                with self._w.noted(_over_axes(reduce)):
                    self._folds.accumulate(reduce.op, total, self._w.spread(v, total.lanes))
            self._store_all(stage.stores)
            self._stores.flush()
            return
        axis = walked[position]
        extent = self._tile.extent(axis)
        low, high = ("partLow", "partHigh") if self._is_shared_by_parts(axis) else ("0", extent)
        if axis in (roles.row, roles.col):
            name = "row" if axis == roles.row else "col"
            size = "tileHeight" if name == "row" else "tileWidth"
            head = f"for (int64_t {name}0 = {low}; {name}0 < {high}; {name}0 += {size}) {{"
            opened = f"const int32_t {name}s = AtMost({size}, {high} - {name}0);"
            self._tile.bound[axis] = f"{name}0"
        else:
            head, opened = f"for (int64_t {axis} = {low}; {axis} < {high}; {axis}++) {{", ""
            self._tile.bound[axis] = axis
        with self._w.loop(head), self._stores.body(), self._values.body():
            if opened:
                self._tile.declare(opened)
            self._walk(position + 1, stage, totals)
        del self._tile.bound[axis]

    def _is_shared_by_parts(self, axis: str) -> bool:
        """Whether a core walks only its part of an axis: the outermost walked one is cut."""
        return PART.name in self.roles.phase.outer and axis == self.roles.walked[0]

    def _store_all(self, numbers: tuple[int, ...]) -> None:
        """Computes the stored tiles now; they are copied out when the body ends."""
        for k in numbers:
            self._stores.add(k, self._values.of(self.nest.stores[k].statement))

    def _shared_value(self, number: int) -> Value:
        v = self._values.of(number)
        assert isinstance(v, Value)
        return v

    # ---- queues --------------------------------------------------------------------------------

    def _queues_of_loads(self) -> None:
        """No more buffers in queues than there are events for."""
        queues = max(self._loads.queues, self._stores.queues)
        if min(queues, MOST_QUEUES) * self.depth > MOST_QUEUES:
            self.depth = 1


def _over_axes(reduce: Reduce) -> str:
    return f"{reduce.op} over {', '.join(reduce.axes)}"
