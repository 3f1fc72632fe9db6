"""Global memory: tiles read into UB and written back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernel_gen.codegen.ascend.instructions.scalar_work import ScalarWork
from kernel_gen.codegen.ascend.instructions.steps import SPACED, Lanes, Value
from kernel_gen.codegen.ascend.instructions.writer import HELD, Writer, literal
from kernel_gen.codegen.ascend.moves.addresses import Place
from kernel_gen.codegen.ascend.moves.clipped import Clip, tile_shape
from kernel_gen.codegen.ascend.moves.indices import LANE_OF, Indices, TileReads
from kernel_gen.codegen.flat.linear import FlatLoad
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType

STORED = {
    DType.F32: "float", DType.F16: "half", DType.BF16: "bfloat16_t", DType.I64: "int64_t",
    DType.I32: "int32_t", DType.I16: "int16_t", DType.I8: "int8_t", DType.U8: "uint8_t",
    DType.BOOL: "uint8_t",
}  # fmt: skip
"""Type of a buffer's elements in global memory."""

_GATHERED = ("float", "half", "int32_t", "int16_t", "bfloat16_t")
_FAR = 1 << 28  # elements between rows that a copy can step over


@dataclass(frozen=True, slots=True)
class Ask:
    """A tile of a load: where that lies, the lanes of the tile, where the tile starts on the row
    and the column axis, and the queue that it comes through."""

    load: FlatLoad
    place: Place
    lanes: Lanes
    bound: Mapping[str, str]
    queue: int


class Reader:
    """Loads of a phase: tile after tile through a queue, or element by element."""

    def __init__(self, reads: TileReads) -> None:
        self.w, self._addresses = reads.writer, reads.addresses
        self._row, self._col = reads.row, reads.col
        self.scalar_work = ScalarWork()
        self._indices = Indices(reads, self.scalar_work)

    def load(self, ask: Ask) -> Value:
        """The tile in its storage type (element by element: in one that can be written singly)."""
        load, lanes, row, col = ask.load, ask.lanes, self._row or "", self._col
        clip = Clip(load, ask.place, lanes, row, col)
        if clip.is_possible():
            return self._queued(ask, lanes, clip.copy(self._addresses, ask.bound, self._n(ask)))
        apart = self._spacing(ask)
        if apart > 1:
            return self._spaced(ask, apart)
        if not load.guards and load.at.is_affine_in(col):
            stride = load.at.coeff(col)
            indirect = any(self._lives_on(s, col) for s in load.at.statements())
            direct = load.at.is_affine_in(row) and not load.at.statements()
            if lanes.axes[1] and stride.const == 1 and not indirect:
                return self._tile(ask) if direct or not lanes.axes[0] else self._rows(ask)
            down = load.at.coeff(row).const
            if not lanes.axes[1] and direct and (not lanes.axes[0] or down == 1):
                return self._tile(ask)
            movable = direct and ask.place.ctype in _GATHERED
            if lanes is Lanes.FULL and movable and down == 1:
                return self._crossed(ask)
            if lanes is Lanes.ROW and movable and down is not None and 0 < down < _FAR:
                return self._strided(ask)
        return self._elements(ask)

    def _n(self, ask: Ask) -> str:
        return self.w.count(ask.lanes)

    def _at(self, ask: Ask) -> str:
        """The first element of the tile, as C++ text."""
        return f"{ask.place.name}[{self._addresses.offset(ask.load.at, ask.bound)}]"

    def _step(self, ask: Ask) -> str:
        """Elements between neighbouring rows of the tile, as C++ text."""
        if ask.lanes is not Lanes.FULL or not self._row:
            return "0"
        return ask.load.at.coeff(self._row).text()

    def _crossed(self, ask: Ask) -> Value:
        """A tile whose rows run along memory: copied as it lies, transposed by gathering."""
        stride = ask.load.at.coeff(self._col).text()
        across = "UpTo(tileHeight, 16)"
        copy = f"CopyIn({{d}}, {self._at(ask)}, cols, rows, {across}, {stride}, tileCross);"
        tile = self._queued(ask, Lanes.CROSS, copy)
        offsets = self.w.table(
            f"CrossOffsets<{ask.place.ctype}>({{d}}, tileHeight, pitch, {across}, tileLanes);",
            Lanes.FULL,
        )
        return self._gathered(tile, offsets, Lanes.FULL, "n")

    def _spacing(self, ask: Ask) -> int:
        """Elements between neighbouring columns of a tile in memory where it pays to copy what lies
        between them as well; else 1."""
        at, row, col = ask.load.at, self._row or "", self._col
        if not ask.lanes.axes[1] or not at.is_affine_in(col) or ask.place.ctype not in _GATHERED:
            return 1
        apart = at.coeff(col).const
        direct = at.is_affine_in(row) and not at.statements()
        if apart not in SPACED or not direct:
            return 1
        if ask.load.guards:
            clip = Clip(ask.load, ask.place, ask.lanes, row, col, apart)
            return apart if clip.is_possible() else 1
        is_crossed = ask.lanes is Lanes.FULL and at.coeff(row).const == 1
        return 1 if is_crossed else apart

    def _spaced(self, ask: Ask, apart: int) -> Value:
        """A tile whose columns are `apart` elements apart: copied with what lies between, then
        gathered."""
        n = self._n(ask)
        if ask.load.guards:
            clip = Clip(ask.load, ask.place, ask.lanes, self._row or "", self._col, apart)
            copy = clip.copy(self._addresses, ask.bound, n)
        else:
            rows, cols, pitch = tile_shape(ask.lanes, apart)
            copy = (
                f"CopyIn({{d}}, {self._at(ask)}, {rows}, {cols}, {pitch}, {self._step(ask)}, "
                f"{apart} * {n});"
            )
        tile = self._queued(ask, SPACED[apart], copy)
        offsets = self.w.table(
            f"SpacedOffsets<{ask.place.ctype}>({{d}}, {apart}, tileLanes);", Lanes.FULL
        )
        return self._gathered(tile, offsets, ask.lanes, n)

    def _strided(self, ask: Ask) -> Value:
        """A row vector from places apart: a block for each element, then gathered."""
        assert self._row is not None
        stride = ask.load.at.coeff(self._row).text()
        copy = f"CopyInBlocks({{d}}, {self._at(ask)}, rows, {stride});"
        tile = self._queued(ask, Lanes.BLOCKS, copy)
        offsets = self.w.table("BlockOffsets({d}, tileRows);", Lanes.ROW)
        return self._gathered(tile, offsets, Lanes.ROW, "rows")

    def _gathered(self, tile: Value, offsets: Value, lanes: Lanes, count: str) -> Value:
        made = self.w.new(tile.ctype, lanes)
        n = self.w.count(lanes)
        if count != n:
            zero = _filled(0, tile.ctype, n).replace("{d}", made.token)
            self.w.step(zero, (), (made,))
        text = (
            f"Gather({made.token}, {tile.token}, {offsets.token}.ReinterpretCast<uint32_t>(), "
            f"static_cast<uint32_t>(0), static_cast<uint32_t>({count}));"
        )
        reads = (tile, offsets) if count == n else (tile, offsets, made)
        self.w.step(text, reads, (made,))
        return made

    def _lives_on(self, statement: int, axis: str) -> bool:
        return axis in self._addresses.nest.statement_axes()[statement]

    def _queued(self, ask: Ask, lanes: Lanes, copy: str, indices: tuple[Value, ...] = ()) -> Value:
        """What `copy` fetches, in `lanes`, through the queue."""
        ctype = ask.place.ctype
        v = self.w.new(ctype, lanes, "in", ask.queue)
        q = f"inQueue{ask.queue}"
        text = (
            f"LocalTensor<{ctype}> {v.token} = {q}.AllocTensor<{ctype}>();\n{copy}\n"
            f"{q}.EnQue({v.token});\n{v.token} = {q}.DeQue<{ctype}>();"
        )
        self.w.step(text.replace("{d}", v.token), indices, (v,), vector=False)
        return v

    def _tile(self, ask: Ask) -> Value:
        shape = {
            Lanes.FULL: "rows, cols, pitch",
            Lanes.COL: "1, cols, pitch",
            Lanes.ROW: "1, rows, rows",
            Lanes.ONE: "1, 1, 1",
        }[ask.lanes]
        copy = f"CopyIn({{d}}, {self._at(ask)}, {shape}, {self._step(ask)}, {self._n(ask)});"
        return self._queued(ask, ask.lanes, copy)

    def _rows(self, ask: Ask) -> Value:
        """One copy per row: rows lie anywhere."""
        assert self._row is not None
        inside = {**ask.bound, self._row: f"({ask.bound[self._row]} + r)"}
        addresses, indices = self._indices.held(ask.load, ask.bound)
        at = addresses.offset(ask.load.at, inside)
        self.scalar_work.add(at, Lanes.ROW)
        self.scalar_work.copies += 1
        copy = (
            "for (int32_t r = 0; r < rows; r++) {\n"
            f"    CopyIn({{d}}[r * pitch], {ask.place.name}[{at}], 1, cols, pitch, 0, "
            "r + 1 < rows ? pitch : n - r * pitch);\n}"
        )
        return self._queued(ask, Lanes.FULL, copy, tuple(indices))

    def _elements(self, ask: Ask) -> Value:
        """Element by element through the scalar unit: any index, guards, indirect reads."""
        w, load, place, lanes, bound = self.w, ask.load, ask.place, ask.lanes, ask.bound
        kept = {"int8_t": "half", "uint8_t": "half"}
        ctype = kept.get(place.ctype, place.ctype)
        inside = dict(bound)
        if lanes.axes[0] and self._row:
            inside[self._row] = f"({bound[self._row]} + r)"
        if lanes.axes[1]:
            inside[self._col] = f"({bound[self._col]} + c)"
        addresses, indices = self._indices.held(load, bound)
        at = addresses.offset(load.at, inside)
        read = f"{place.name}.GetValue({at})"
        if ctype != place.ctype:
            read = f"static_cast<{ctype}>({read})"
        where = LANE_OF[lanes]
        body = f"{{d}}.SetValue({where}, {read});"
        if load.guards:
            body = f"if ({addresses.guarded(load.guards, inside)}) {{\n    {body}\n}}"
            if ctype == "int64_t" and load.fill:
                fill = f"static_cast<int64_t>({int(load.fill)}LL)"
                body += f" else {{\n    {{d}}.SetValue({where}, {fill});\n}}"
        self.scalar_work.add(body, lanes)
        for flag, name, count in ((1, "c", "cols"), (0, "r", "rows")):
            if lanes.axes[flag]:
                inner = "\n".join("    " + line for line in body.splitlines())
                body = f"for (int32_t {name} = 0; {name} < {count}; {name}++) {{\n{inner}\n}}"
        start = _filled(0 if ctype == "int64_t" else load.fill, ctype, w.count(lanes))
        text = f"{start}\nWaitFor<HardEvent::V_S>();\n{body}\nWaitFor<HardEvent::S_V>();"
        return w.emit(text, ctype, lanes, *indices)

    def converted(self, v: Value, stored: DType, dtype: DType) -> Value:
        """A loaded tile in the type in which `dtype` is held."""
        w = self.w
        held = HELD[dtype]
        if dtype is DType.I64 and v.ctype == "int64_t":
            return v
        if v.ctype == held:
            return v
        if dtype is DType.BOOL:
            half = v if v.ctype == "half" else w.cast(v, "half", "NONE")
            return half if stored is DType.BOOL else w.compare("NE", half, 0)
        if held == "float":
            return self._as_float(v)
        if v.ctype in ("int8_t", "uint8_t"):
            v = w.cast(v, "half", "NONE")
        if v.ctype == "int16_t":
            v = w.cast(v, "float", "NONE")
        truncates = stored.is_float
        return w.cast(v, held, "TRUNC" if truncates else "RINT")

    def _as_float(self, v: Value) -> Value:
        w = self.w
        if v.ctype in ("int8_t", "uint8_t"):
            v = w.cast(v, "half", "NONE")
        return w.cast(v, "float", "RINT" if v.ctype == "int64_t" else "NONE")


def _filled(value: float | int | bool, ctype: str, n: str) -> str:
    """A tensor `{d}` full of one value; of zeros in 64 bits."""
    if ctype == "int64_t":
        return f"Duplicate({{d}}.ReinterpretCast<int32_t>(), static_cast<int32_t>(0), 2 * {n});"
    if ctype != "bfloat16_t":
        return f"Duplicate({{d}}, {literal(value, ctype)}, {n});"
    word = int(np.asarray(value, numpy_dtype(DType.BF16)).view(np.uint16))
    return f"Duplicate({{d}}.ReinterpretCast<uint16_t>(), static_cast<uint16_t>({word}), {n});"


def as_stored(w: Writer, v: Value, stored: DType) -> Value:
    """A held value in the storage type of a buffer; a fresh value, so that it may be a queue's."""
    ctype = STORED[stored]
    if stored is DType.BOOL:
        half = w.as_half(v)
        return w.cast(half, "uint8_t", "RINT")
    if v.ctype == "bits":
        v = w.as_half(v)
    if ctype == v.ctype:
        if ctype == "int64_t":
            return w.emit(f"DataCopy({{d}}, {v.token}, {w.count(v.lanes)});", ctype, v.lanes, v)
        return w.scalar("Muls", v, 1)
    if ctype in ("half", "bfloat16_t", "float"):
        if v.ctype == "int32_t":
            v = w.cast(v, "float", "NONE")
        return v if v.ctype == ctype else w.cast(v, ctype, "RINT")
    if ctype in ("int8_t", "uint8_t"):
        if v.ctype == "int32_t":
            v = w.cast(v, "float", "NONE")
        if v.ctype != "half":
            v = w.cast(v, "half", "NONE")
        return w.cast(v, ctype, "RINT")
    return w.cast(v, ctype, "TRUNC" if v.ctype == "float" else "NONE")
