"""Results of a phase on their way out: made in the tensors of output queues, copied when a body
ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kernel_gen.codegen.ascend.instructions.layout import MOST_QUEUES
from kernel_gen.codegen.ascend.instructions.steps import Lanes, Step, Value, lanes_of
from kernel_gen.codegen.ascend.instructions.wide_integers import is_narrow
from kernel_gen.codegen.ascend.instructions.writer import HELD, Const, Operand, UnfitError, Writer
from kernel_gen.codegen.ascend.moves.addresses import Addresses, Place
from kernel_gen.codegen.ascend.moves.memory import STORED, as_stored
from kernel_gen.codegen.ascend.tiles.tasks import Tile
from kernel_gen.codegen.flat.linear import FlatStore, Linear
from kernel_gen.codegen.flat.phases import store_axes
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType


@dataclass(frozen=True, slots=True)
class Shared:
    """Where later phases find a reduction: a tensor in the workspace, dense over its axes."""

    place: Place
    at: Linear


class Stores:
    """Stores of one phase. `queues` counts the queues that they would like to have."""

    def __init__(self, writer: Writer, tile: Tile, addresses: Addresses) -> None:
        self._w, self._tile, self._addresses = writer, tile, addresses
        self._pending: list[tuple[FlatStore | Shared, Value]] = []
        self.queues = 0

    @contextmanager
    def body(self) -> Iterator[None]:
        """Stores made within belong to a body of their own, which `flush` ends."""
        outer, self._pending = self._pending, []
        yield
        self._pending = outer

    def add(self, number: int, v: Operand) -> None:
        """Store `number` of the nest writes the tile `v`."""
        nest, roles = self._tile.nest, self._tile.roles
        store = nest.stores[number]
        stored = nest.buffers[store.buffer].type.dtype
        axes = store_axes(nest, number)
        lanes = lanes_of(roles.row in axes, roles.col in axes)
        if isinstance(v, Const):
            if stored is DType.I64 and not is_narrow(v.value):
                raise UnfitError(
                    Refusal("op-not-on-device", "no constants beyond 32 bits are written")
                )
            v = self._w.constant(v.value, HELD[nest.statements[store.statement].dtype], lanes)
        v = self._w.spread(self._w.as_half(v) if v.ctype == "bits" else v, lanes)
        if v.ctype != STORED[stored] or not self._is_fresh(v):
            v = as_stored(self._w, v, stored)
        self._pending.append((store, v))

    def share(self, target: Shared, v: Value) -> None:
        """A reduction that later phases read."""
        self._pending.append((target, self._w.scalar("Muls", v, 1)))

    def flush(self) -> None:
        """Copies the finished tiles of this body out."""
        for target, v in self._pending:
            place = (
                self._addresses.places[target.buffer]
                if isinstance(target, FlatStore)
                else target.place
            )
            self._copy_out(target.at, place, v)
        self._pending = []

    def _is_fresh(self, v: Value) -> bool:
        """Whether a value may be made in the output queue's tensor itself: it is computed in this
        body, and no other store has it."""
        made = [s for s in self._w.body if isinstance(s, Step) and v in s.writes]
        taken = any(v is other for _, other in self._pending)
        alone = v.home == "calc" and not v.pinned and not taken and len(made) == 1
        return alone and made[0].onto is None

    def _copy_out(self, at: Linear, place: Place, v: Value) -> None:
        roles = self._tile.roles
        offset = self._addresses.offset(at, self._tile.bound)
        stride = at.coeff(roles.row).text() if roles.row else "0"
        shape = {
            Lanes.FULL: f"rows, cols, pitch, {stride}",
            Lanes.COL: "1, cols, pitch, 0",
            Lanes.ROW: "1, rows, rows, 0",
            Lanes.ONE: "1, 1, 1, 0",
        }[v.lanes]
        copy = f"CopyOut({place.name}[{offset}], {{v}}, {shape});"
        if v.lanes.axes[1] and at.coeff(roles.col).const != 1:
            raise UnfitError(Refusal("store-strided", f"{place.name} is not written along columns"))
        if v.lanes is Lanes.ROW and at.coeff(roles.row or "").const != 1:
            v = self._w.blocks(v)
            copy = f"CopyBlocks({place.name}[{offset}], {{v}}, rows, {stride});"
        queue = min(self.queues, MOST_QUEUES - 1)
        self.queues += 1
        if queue == MOST_QUEUES - 1:  # the last queue is shared: its tensor lives for one copy
            v = self._w.copied(v)
        v.home, v.queue = "out", queue
        q, kind = f"outQueue{queue}", v.ctype
        text = (
            f"{q}.EnQue({v.token});\n{v.token} = {q}.DeQue<{kind}>();\n"
            f"{copy.replace('{v}', v.token)}\n{q}.FreeTensor({v.token});"
        )
        self._w.step(text, (v,), (), vector=False)
