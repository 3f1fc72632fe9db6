"""Positions along the axes of a tile, as int32 values."""

from __future__ import annotations

from collections.abc import Mapping

from kernel_gen.codegen.ascend.instructions.scalar_work import ScalarWork
from kernel_gen.codegen.ascend.instructions.steps import Lanes, Value
from kernel_gen.codegen.ascend.instructions.writer import Writer
from kernel_gen.codegen.ascend.moves.addresses import Addresses
from kernel_gen.codegen.ascend.moves.indices import LANE_OF
from kernel_gen.codegen.ascend.tiles.roles import Roles
from kernel_gen.ir.index import AxisTerm, Index


class Positions:
    """Writes the values of indices. `bound` gives the start of the tile."""

    def __init__(
        self, writer: Writer, addresses: Addresses, roles: Roles, work: ScalarWork
    ) -> None:
        self._w, self._addresses, self._roles, self._work = writer, addresses, roles, work

    def tile(self, index: Index, lanes: Lanes, bound: Mapping[str, str]) -> Value:
        """Positions as int32: start + step · lane along each axis of the tile, or one by one."""
        w, row, col = self._w, self._roles.row, self._roles.col
        plain = all(isinstance(t, AxisTerm) for t, _ in index.terms)
        if not plain:
            return self._singly(index, lanes, bound)
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

    def _singly(self, index: Index, lanes: Lanes, starts: Mapping[str, str]) -> Value:
        bound = dict(starts)
        where = LANE_OF[lanes]
        if lanes.axes[0] and self._roles.row:
            bound[self._roles.row] = f"({bound[self._roles.row]} + r)"
        if lanes.axes[1]:
            bound[self._roles.col] = f"({bound[self._roles.col]} + c)"
        at = self._addresses.index(index, bound)
        body = f"{{d}}.SetValue({where}, static_cast<int32_t>({at}));"
        self._work.add(body, lanes)
        for flag, name, count in ((1, "c", "cols"), (0, "r", "rows")):
            if lanes.axes[flag]:
                body = f"for (int32_t {name} = 0; {name} < {count}; {name}++) {{\n    {body}\n}}"
        n = self._w.count(lanes)
        text = (
            f"Duplicate({{d}}, static_cast<int32_t>(0), {n});\nWaitFor<HardEvent::V_S>();\n{body}\n"
            "WaitFor<HardEvent::S_V>();"
        )
        return self._w.emit(text, "int32_t", lanes)
