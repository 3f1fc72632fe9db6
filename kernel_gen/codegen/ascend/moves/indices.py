"""Positions that a tile's elements are read at, copied into the unified buffer before the scalar
unit reads them: a read of global memory takes as long as some twenty of the buffer's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_gen.codegen.ascend.instructions.scalar_work import ScalarWork
from kernel_gen.codegen.ascend.instructions.steps import Lanes, Value, lanes_of
from kernel_gen.codegen.ascend.instructions.writer import Writer
from kernel_gen.codegen.ascend.moves.addresses import Addresses
from kernel_gen.codegen.flat.linear import FlatLoad, flat_operands

_COPIED = ("int32_t", "int64_t")
LANE_OF = {Lanes.FULL: "r * pitch + c", Lanes.ROW: "r", Lanes.COL: "c", Lanes.ONE: "0"}
"""The lane of the element at row `r` and column `c`, as text."""


@dataclass(frozen=True, slots=True)
class TileReads:
    """What all reads of a phase's tiles share: where their text goes, what finds their elements,
    and the axes along which a tile's rows (None: it has one) and its columns run."""

    writer: Writer
    addresses: Addresses
    row: str | None
    col: str


class Indices:
    """Copies the positions that loads read."""

    def __init__(self, reads: TileReads, work: ScalarWork) -> None:
        self._w, self._addresses = reads.writer, reads.addresses
        self._nest, self._places = reads.addresses.nest, reads.addresses.places
        self._row, self._col, self._work = reads.row or "", reads.col, work

    def held(self, load: FlatLoad, bound: Mapping[str, str]) -> tuple[Addresses, list[Value]]:
        """Addresses that find the load's positions in the buffer at row `r` and column `c` of the
        tile that starts at `bound`, as far as they lie there as a tile does; and their tensors."""
        texts: dict[int, str] = {}
        values: list[Value] = []
        for number in self._read_by(load):
            source = self._nest.statements[number]
            assert isinstance(source, FlatLoad)
            lanes = self._lanes(source)
            if lanes is not None:
                value = self._copied(source, lanes, bound)
                values.append(value)
                at = f"static_cast<uint32_t>({LANE_OF[lanes]})"
                texts[number] = f"static_cast<int64_t>({value.token}.GetValue({at}))"
        return self._addresses.holding(texts), values

    def _read_by(self, load: FlatLoad) -> list[int]:
        """Loads that the positions of a load are computed from."""
        found: set[int] = set()
        todo = sorted(load.at.statements())
        while todo:
            number = todo.pop()
            if number not in found:
                found.add(number)
                todo += flat_operands(self._nest.statements[number])
        return sorted(n for n in found if isinstance(self._nest.statements[n], FlatLoad))

    def _lanes(self, source: FlatLoad) -> Lanes | None:
        """How positions lie in a tile; None where they are not read in rows."""
        at, row, col = source.at, self._row, self._col
        if source.guards or at.statements() or self._places[source.buffer].ctype not in _COPIED:
            return None
        if not (at.is_affine_in(row) and at.is_affine_in(col)):
            return None
        lanes = lanes_of(row in at.axes(), col in at.axes())
        along = {Lanes.FULL: col, Lanes.COL: col, Lanes.ROW: row}.get(lanes)
        return lanes if along and at.coeff(along).const == 1 else None

    def _copied(self, source: FlatLoad, lanes: Lanes, bound: Mapping[str, str]) -> Value:
        place = self._places[source.buffer]
        at = self._addresses.offset(source.at, bound)
        stride = source.at.coeff(self._row).text() if lanes is Lanes.FULL else "0"
        shape = {
            Lanes.FULL: f"rows, cols, pitch, {stride}",
            Lanes.COL: "1, cols, pitch, 0",
            Lanes.ROW: "1, rows, rows, 0",
        }[lanes]
        value = self._w.new(place.ctype, lanes, "scalar")
        text = f"CopyIndices({value.token}, {place.name}[{at}], {shape});"
        self._w.step(text, (), (value,), vector=False)
        self._work.waits += 1
        return value
