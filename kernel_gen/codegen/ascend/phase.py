"""One phase of a kernel: tasks over tiles, stages within a task, and the statements of each stage.

for each task (this core's share)            rows x cols tile, other outer axes fixed
    stage 0, walked or whole: load, compute, reduce
    stage 1: …
    stores
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_gen.codegen.ascend.addresses import Addresses, Place
from kernel_gen.codegen.ascend.elementwise import Elementwise
from kernel_gen.codegen.ascend.layout import Layout, lay_out
from kernel_gen.codegen.ascend.memory import STORED, Reader, as_stored
from kernel_gen.codegen.ascend.reduction import Reductions
from kernel_gen.codegen.ascend.roles import Roles, extent_text, phase_accesses
from kernel_gen.codegen.ascend.split_reduce import PART
from kernel_gen.codegen.ascend.steps import (
    SIZES,
    Body,
    Lanes,
    Loop,
    Step,
    Value,
    lanes_of,
    steps_of,
)
from kernel_gen.codegen.ascend.writer import HELD, Const, Operand, UnfitError, Writer
from kernel_gen.codegen.cpu.linear import FlatLoad, FlatNest, FlatStore, Linear, flat_operands
from kernel_gen.codegen.cpu.phases import Stage, closure, reductions, store_axes
from kernel_gen.errors import InternalError, Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm, Index
from kernel_gen.ir.loopnest import Compute, IndexValue, Reduce

MOST_QUEUES = 6  # of each kind: event ids 6 and 7 of a pair of pipes are reserved
_DECLARED = re.compile(r"^(?:const )?int(?:32|64)_t (\w+) = ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shared:
    """Where later phases find a reduction: a tensor in the workspace, dense over its axes."""

    place: Place
    at: Linear


@dataclass(slots=True)
class PhaseText:
    """A phase laid out: the lines of its body and its rooms in UB."""

    roles: Roles
    layout: Layout
    splits_rows: bool
    splits_cols: bool


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
        self._memos: list[dict[int, Operand]] = [{}]
        self._bound: dict[str, str] = {}
        self._pending: list[tuple[FlatStore | Shared, Value]] = []
        self._loads = self._stores = 0
        self._head_known = False
        self._once_queue: int | None = None
        self._live = nest.statement_axes()
        self._uses = Counter(u for s in nest.statements for u in flat_operands(s))
        for store in nest.stores:
            self._uses.update([store.statement, *store.at.statements()])
        self._addresses = Addresses(nest, places)
        self._reader = Reader(self._w, nest, self._addresses, roles.row, roles.col)
        self._ops, self._folds = Elementwise(self._w), Reductions(self._w)

    def run(self, indent: str) -> PhaseText:
        with self._w.loop("for (int64_t task = first; task < last; task++) {"):
            self._task()
            self._flush()
        self._queues_of_loads()
        _drop_unused(self._w.body)
        return PhaseText(
            self.roles,
            lay_out(self._w.body, self.depth, indent),
            self._is_task(self.roles.row),
            self._is_task(self.roles.col),
        )

    # ---- tasks ---------------------------------------------------------------------------------

    def _is_task(self, axis: str | None) -> bool:
        return axis is not None and axis in self.roles.phase.outer

    def _extent(self, axis: str) -> str:
        return extent_text(self.nest, axis)

    def _declare(self, text: str) -> None:
        self._w.step(text, vector=False)

    def _task(self) -> None:
        roles = self.roles
        self._declare("int64_t left = task;")
        if self._is_task(roles.col):
            self._declare("const int64_t col0 = left % colTiles * tileWidth;")
            self._declare("left /= colTiles;")
        if self._is_task(roles.row):
            self._declare("const int64_t row0 = left % rowTiles * tileHeight;")
            self._declare("left /= rowTiles;")
        for axis in reversed(roles.outer):
            extent = self._extent(axis)
            self._declare(f"const int64_t {axis} = left % {extent};")
            self._declare(f"left /= {extent};")
            self._bound[axis] = axis
        if PART.name in roles.phase.outer:
            whole, parts = self._extent(roles.walked[0]), self._extent(PART.name)
            self._declare(f"const int64_t partLow = {whole} * {PART.name} / {parts};")
            self._declare(f"const int64_t partHigh = {whole} * ({PART.name} + 1) / {parts};")
        self._open_axis(roles.row, "row")
        self._open_axis(roles.col, "col")
        self._counts()
        for stage in roles.phase.stages:
            self._stage(stage)

    def _open_axis(self, axis: str | None, name: str) -> None:
        """Binds the tile's axis where it is not walked in steps."""
        if axis is None:
            self._declare(f"const int32_t {name}s = 1;")
            return
        size = "tileHeight" if name == "row" else "tileWidth"
        if axis in self.roles.walked:
            return
        if self._is_task(axis):
            self._bound[axis] = f"{name}0"
            self._declare(
                f"const int32_t {name}s = AtMost({size}, {self._extent(axis)} - {name}0);"
            )
        else:
            self._bound[axis] = "0"
            self._declare(f"const int32_t {name}s = static_cast<int32_t>({self._extent(axis)});")

    def _counts(self) -> None:
        """Numbers of lanes, once `rows` and `cols` are known."""
        u = self.unit_lanes
        row_known = self.roles.row not in self.roles.walked
        col_known = self.roles.col not in self.roles.walked
        if row_known:
            self._declare(f"const int32_t rn = UpTo(rows, {u});")
        if row_known and col_known:
            self._both_counts()
        elif col_known:
            self._declare(
                f"const int32_t cn = tileHeight > 1 ? UpTo(pitch, {u}) : UpTo(cols, {u});"
            )

    def _both_counts(self) -> None:
        u = self.unit_lanes
        self._declare(f"const int32_t n = rows > 1 ? UpTo(rows * pitch, {u}) : UpTo(cols, {u});")
        if self.roles.row not in self.roles.walked or self.roles.col in self.roles.walked:
            self._declare(f"const int32_t cn = rows > 1 ? UpTo(pitch, {u}) : UpTo(cols, {u});")

    # ---- stages --------------------------------------------------------------------------------

    def _stage(self, stage: Stage) -> None:
        reduces = [(r, self._reduce(r)) for r in stage.reduces]
        if not self.roles.walked or not (reduces or stage.stores):
            for number, reduce in reduces:
                self._whole(number, reduce)
            self._stores_of((*stage.stores, *stage.row_stores))
        else:
            self._walked(stage, reduces)
            self._stores_of(stage.row_stores)
        for number, _ in reduces:
            if number in self.shared:
                self._share(number)

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
        v = self._value(reduce.arg)
        lanes = v.lanes if isinstance(v, Value) else Lanes.ONE
        over = self._over(reduce)
        wanted = lanes_of(lanes.axes[0] or over[0], lanes.axes[1] or over[1])
        if isinstance(v, Const):
            return self._w.constant(v.value, held, wanted)
        if v.ctype == "int64_t":
            v = self._w.cast(v, "int32_t", "NONE")
        return self._w.spread(v, wanted)

    def _whole(self, number: int, reduce: Reduce) -> None:
        v = self._full_operand(reduce)
        made = self._folds.tile(reduce.op, v, self._over(reduce), "rows", "cols")
        self._memos[-1][number] = self._ops.wrapped(made, reduce.dtype)

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
            self._memos[-1][number] = self._ops.wrapped(made, reduce.dtype)

    def _fold_lanes(self) -> str:
        """Lanes of a column vector outside of the loops."""
        return "tileCols" if self.roles.col in self.roles.walked else "cn"

    def _total(self, reduce: Reduce) -> Value:
        live = self._live[reduce.arg] | set(reduce.axes)
        lanes = lanes_of(self.roles.row in live, self.roles.col in live)
        return self._folds.accumulator(reduce.op, reduce.dtype, HELD[reduce.dtype], lanes)

    def _before_loops(self, stage: Stage) -> None:
        """What does not depend on the walked axes is computed once, before the loops."""
        roots = [self._reduce(r).arg for r in stage.reduces]
        roots += [self.nest.stores[k].statement for k in stage.stores]
        for number in sorted(closure(self.nest, roots, frozenset(reductions(self.nest)))):
            s = self.nest.statements[number]
            known = isinstance(s, Reduce) and number in self._memos[0]
            walked = set(self.roles.walked) & self._live[number]
            if not (walked or known or self._is_index(number)):
                self._value(number)

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
            self._counts_in_loop()
            for number, total in totals.items():
                reduce = self._reduce(number)
                v = self._full_operand(reduce)
                self._folds.accumulate(reduce.op, total, self._w.spread(v, total.lanes))
            self._stores_of(stage.stores)
            self._flush()
            return
        axis = walked[position]
        extent = self._extent(axis)
        low, high = ("partLow", "partHigh") if self._is_shared_by_parts(axis) else ("0", extent)
        if axis in (roles.row, roles.col):
            name = "row" if axis == roles.row else "col"
            size = "tileHeight" if name == "row" else "tileWidth"
            head = f"for (int64_t {name}0 = {low}; {name}0 < {high}; {name}0 += {size}) {{"
            opened = f"const int32_t {name}s = AtMost({size}, {high} - {name}0);"
            self._bound[axis] = f"{name}0"
        else:
            head, opened = f"for (int64_t {axis} = {low}; {axis} < {high}; {axis}++) {{", ""
            self._bound[axis] = axis
        with self._w.loop(head):
            self._memos.append({})
            pending, self._pending = self._pending, []
            if opened:
                self._declare(opened)
            self._walk(position + 1, stage, totals)
            self._pending = pending
            self._memos.pop()
        del self._bound[axis]

    def _is_shared_by_parts(self, axis: str) -> bool:
        """Whether a core walks only its part of an axis: the outermost walked one is cut."""
        return PART.name in self.roles.phase.outer and axis == self.roles.walked[0]

    def _counts_in_loop(self) -> None:
        u, walked = self.unit_lanes, self.roles.walked
        if self.roles.row in walked:
            self._declare(f"const int32_t rn = UpTo(rows, {u});")
        if self.roles.row in walked or self.roles.col in walked:
            self._declare(
                f"const int32_t n = rows > 1 ? UpTo(rows * pitch, {u}) : UpTo(cols, {u});"
            )
        if self.roles.col in walked:
            self._declare(f"const int32_t cn = rows > 1 ? UpTo(pitch, {u}) : UpTo(cols, {u});")

    # ---- statements ----------------------------------------------------------------------------

    def _value(self, number: int) -> Operand:
        for memo in reversed(self._memos):
            if number in memo:
                return memo[number]
        made = self._computed(number)
        self._memos[-1][number] = made
        return made

    def _lanes(self, number: int) -> Lanes:
        live = self._live[number]
        return lanes_of(self.roles.row in live, self.roles.col in live)

    def _computed(self, number: int) -> Operand:
        s = self.nest.statements[number]
        match s:
            case FlatLoad():
                return self._load(number, s)
            case IndexValue():
                return self._position(s, self._lanes(number))
            case Compute():
                return self._compute(s)
            case Reduce() if number in self.shared:
                return self._shared_load(number, s)
        raise InternalError(f"statement {number} is not available in this phase: {s}")

    def _compute(self, s: Compute) -> Operand:
        if s.op == "const":
            value = dict(s.attrs)["value"]
            assert isinstance(value, int | float | bool)
            return Const(value, s.dtype)
        fused = self._fused(s) if s.op == "add" and s.dtype is DType.F32 else None
        if fused is not None:
            return fused
        args = [self._value(a) for a in s.args]
        source = self.nest.statements[s.args[1] if s.op == "where" else s.args[0]].dtype
        return self._ops.compute(s.op, s.dtype, source, args)

    def _fused(self, s: Compute) -> Value | None:
        """A sum with a product that nothing else reads, in one instruction where a factor's buffer
        can take the result."""
        for number, other in (s.args, s.args[::-1]):
            m = self.nest.statements[number]
            known = any(number in memo for memo in self._memos)
            product = isinstance(m, Compute) and m.op == "mul" and m.dtype is DType.F32
            if known or not product or self._uses[number] != 1:
                continue
            assert isinstance(m, Compute)
            for left, right in (m.args, m.args[::-1]):
                a, b, c = self._value(left), self._value(right), self._value(other)
                if isinstance(a, Const) or isinstance(b, Const) or isinstance(c, Const):
                    break
                column = a.lanes is Lanes.FULL
                fit = all(v.lanes is a.lanes or (column and v.lanes is Lanes.COL) for v in (b, c))
                apart = a is not b and a is not c
                if fit and apart and self._uses[left] == 1 and self._is_last_of(a):
                    return self._w.fused(a, b, c)
        return None

    def _is_last_of(self, a: Value) -> bool:
        """Whether a value has a buffer of its own, made in this body for one statement."""
        made = [s for s in self._w.body if isinstance(s, Step) and a in s.writes]
        owners = sum(v is a for memo in self._memos for v in memo.values())
        return a.home == "calc" and not a.pinned and len(made) == 1 and owners == 1

    def _load(self, number: int, load: FlatLoad) -> Value:
        if self._same_for_all(load):
            made = self._memos[0][number] = self._once(number, load)
            return made
        return self._loaded(number, load)

    def _once(self, number: int, load: FlatLoad) -> Value:
        """A load before the tasks, with the extents that it has there."""
        with self._w.head():
            if not self._head_known:
                extent = self._extent(self.roles.col)
                self._declare(f"const int32_t allCols = static_cast<int32_t>({extent});")
            self._head_known = True
            made = self._loaded(number, load, once=True)
            for step in steps_of(self._w.body):
                step.text = re.sub(r"\bcn\b", "tileCols", re.sub(r"\bcols\b", "allCols", step.text))
                for value in step.writes:
                    value.once = value.home == "in"
        return made

    def _same_for_all(self, load: FlatLoad) -> bool:
        """Whether all tasks read the same: whole rows of a vector along the columns."""
        roles = self.roles
        whole = roles.whole and roles.is_inner(roles.col)
        plain = not load.guards and not load.at.statements() and load.at.is_affine_in(roles.col)
        return whole and plain and load.at.axes() == {roles.col} and self._loads < MOST_QUEUES - 1

    def _loaded(self, number: int, load: FlatLoad, *, once: bool = False) -> Value:
        place = self.places[load.buffer]
        stored = self.nest.buffers[load.buffer].type.dtype
        return self._reader.converted(
            self._read(load, place, number, once=once), stored, load.dtype
        )

    def _read(self, load: FlatLoad, place: Place, number: int, *, once: bool = False) -> Value:
        """A tile of a load; loads beyond the last queue share it, each copied away at once, and so
        do those before the tasks that are converted at once."""
        last = MOST_QUEUES - 1
        queue = min(self._loads, last)
        converts = once and place.ctype != HELD[load.dtype]
        if converts and self._once_queue is not None:
            queue = self._once_queue
        v = self._reader.load(load, place, self._lanes(number), self._bound, queue)
        if v.home == "in" and queue == self._once_queue:
            return v
        if v.home == "in":
            self._once_queue = queue if converts and queue != last else self._once_queue
            self._loads += 1
            if queue == last:
                return self._copied(v)
        return v

    def _copied(self, v: Value) -> Value:
        """The same elements in a buffer of their own."""
        blocks = f"rows * {32 // SIZES[v.ctype]}"
        count = blocks if v.lanes is Lanes.BLOCKS else self._w.count(v.lanes)
        return self._w.emit(f"DataCopy({{d}}, {v.token}, {count});", v.ctype, v.lanes, v)

    def _shared_load(self, number: int, reduce: Reduce) -> Value:
        spot = self.shared[number]
        return self._read(FlatLoad(-1, spot.at, reduce.dtype), spot.place, number)

    def _position(self, s: IndexValue, lanes: Lanes) -> Value:
        """Positions as int32: start + step · lane along each axis of the tile, or one by one."""
        w, row, col = self._w, self.roles.row, self.roles.col
        index = s.index
        plain = all(isinstance(t, AxisTerm) for t, _ in index.terms)
        bound = {**self._bound}
        if not plain:
            return self._positions_singly(index, lanes)
        start = self._addresses.index(index, bound)
        if lanes is Lanes.ONE:
            text = f"Duplicate({{d}}, static_cast<int32_t>({start}), {w.count(lanes)});"
            return w.emit(text, "int32_t", lanes)
        parts: list[Value] = []
        for axis, kind in ((row, Lanes.ROW), (col, Lanes.COL)):
            if axis is not None and index.coeff(axis):
                v = w.emit(
                    f"CreateVecIndex({{d}}, static_cast<int32_t>(0), {w.count(kind)});",
                    "int32_t",
                    kind,
                )
                parts.append(w.scalar("Muls", v, index.coeff(axis)))
        n = w.count(parts[0].lanes)
        text = f"Adds({{d}}, {parts[0].token}, static_cast<int32_t>({start}), {n});"
        first = w.emit(text, "int32_t", parts[0].lanes, parts[0])
        return w.binary("Add", first, parts[1]) if len(parts) > 1 else first

    def _positions_singly(self, index: Index, lanes: Lanes) -> Value:
        bound = dict(self._bound)
        where = {Lanes.FULL: "r * pitch + c", Lanes.ROW: "r", Lanes.COL: "c", Lanes.ONE: "0"}[lanes]
        if lanes.axes[0] and self.roles.row:
            bound[self.roles.row] = f"({bound[self.roles.row]} + r)"
        if lanes.axes[1]:
            bound[self.roles.col] = f"({bound[self.roles.col]} + c)"
        at = self._addresses.index(index, bound)
        body = f"{{d}}.SetValue({where}, static_cast<int32_t>({at}));"
        for flag, name, count in ((1, "c", "cols"), (0, "r", "rows")):
            if lanes.axes[flag]:
                body = f"for (int32_t {name} = 0; {name} < {count}; {name}++) {{\n    {body}\n}}"
        n = self._w.count(lanes)
        text = (
            f"Duplicate({{d}}, static_cast<int32_t>(0), {n});\nWaitFor<HardEvent::V_S>();\n{body}\n"
            "WaitFor<HardEvent::S_V>();"
        )
        return self._w.emit(text, "int32_t", lanes)

    # ---- stores --------------------------------------------------------------------------------

    def _stores_of(self, numbers: tuple[int, ...]) -> None:
        for k in numbers:
            self._store(k)

    def _store(self, k: int) -> None:
        """Computes the stored tile now; it is copied out when the body ends."""
        store = self.nest.stores[k]
        buffer = self.nest.buffers[store.buffer]
        axes = store_axes(self.nest, k)
        lanes = lanes_of(self.roles.row in axes, self.roles.col in axes)
        v = self._value(store.statement)
        if isinstance(v, Const):
            v = self._w.constant(v.value, HELD[self.nest.statements[store.statement].dtype], lanes)
        v = self._w.spread(self._w.as_half(v) if v.ctype == "bits" else v, lanes)
        if v.ctype != STORED[buffer.type.dtype] or not self._is_fresh(v):
            v = as_stored(self._w, v, buffer.type.dtype)
        self._pending.append((store, v))

    def _is_fresh(self, v: Value) -> bool:
        """Whether a value may be made in the output queue's tensor itself: it is computed in this
        body, and no other store has it."""
        made = [s for s in self._w.body if isinstance(s, Step) and v in s.writes]
        taken = any(v is other for _, other in self._pending)
        alone = v.home == "calc" and not v.pinned and not taken and len(made) == 1
        return alone and made[0].onto is None

    def _share(self, number: int) -> None:
        v = self._value(number)
        assert isinstance(v, Value)
        self._pending.append((self.shared[number], self._w.scalar("Muls", v, 1)))

    def _flush(self) -> None:
        """Copies the finished tiles of this body out."""
        for target, v in self._pending:
            place = self.places[target.buffer] if isinstance(target, FlatStore) else target.place
            self._copy_out(target.at, place, v)
        self._pending = []

    def _copy_out(self, at: Linear, place: Place, v: Value) -> None:
        offset = self._addresses.offset(at, self._bound)
        stride = at.coeff(self.roles.row).text() if self.roles.row else "0"
        shape = {
            Lanes.FULL: f"rows, cols, pitch, {stride}",
            Lanes.COL: "1, cols, pitch, 0",
            Lanes.ROW: "1, rows, rows, 0",
            Lanes.ONE: "1, 1, 1, 0",
        }[v.lanes]
        copy = f"CopyOut({place.name}[{offset}], {{v}}, {shape});"
        if v.lanes.axes[1] and at.coeff(self.roles.col).const != 1:
            raise UnfitError(Refusal("store-strided", f"{place.name} is not written along columns"))
        if v.lanes is Lanes.ROW and at.coeff(self.roles.row or "").const != 1:
            v = self._w.blocks(v)
            copy = f"CopyBlocks({place.name}[{offset}], {{v}}, rows, {stride});"
        queue = min(self._stores, MOST_QUEUES - 1)
        self._stores += 1
        if queue == MOST_QUEUES - 1:  # the last queue is shared: its tensor lives for one copy
            v = self._copied(v)
        v.home, v.queue = "out", queue
        q, kind = f"outQueue{queue}", v.ctype
        text = (
            f"{q}.EnQue({v.token});\n{v.token} = {q}.DeQue<{kind}>();\n"
            f"{copy.replace('{v}', v.token)}\n{q}.FreeTensor({v.token});"
        )
        self._w.step(text, (v,), (), vector=False)

    # ---- queues --------------------------------------------------------------------------------

    def _queues_of_loads(self) -> None:
        """No more buffers in queues than there are events for."""
        if min(max(self._loads, self._stores), MOST_QUEUES) * self.depth > MOST_QUEUES:
            self.depth = 1


def _drop_unused(body: Body) -> None:
    """Removes declarations of numbers that nothing mentions."""
    while True:
        text = "\n".join(s.text for s in steps_of(body)) + "\n".join(_heads(body))
        names = {m[1] for m in _DECLARED.finditer(text)}
        unused = {n for n in names if len(re.findall(rf"\b{n}\b", text)) == _count(n, text)}
        if not unused:
            return
        _remove(body, unused)


def _count(name: str, text: str) -> int:
    """How often a name is declared (each declaration mentions it once)."""
    return sum(m[1] == name for m in _DECLARED.finditer(text))


def _heads(body: Body) -> list[str]:
    loops = [item for item in body if isinstance(item, Loop)]
    return [head for loop in loops for head in (loop.head, *_heads(loop.body))]


def _remove(body: Body, names: set[str]) -> None:
    for item in list(body):
        if isinstance(item, Loop):
            _remove(item.body, names)
        elif (found := _DECLARED.match(item.text)) and found[1] in names:
            body.remove(item)
