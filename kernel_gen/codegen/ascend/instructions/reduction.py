"""Reductions of a tile, and accumulators of those that take several tiles."""

from __future__ import annotations

from kernel_gen.codegen.ascend.instructions.steps import Lanes, Value
from kernel_gen.codegen.ascend.instructions.writer import Writer, literal
from kernel_gen.ir.dtype import DType

_FOLDS = {"sum": "Add", "prod": "Mul", "amax": "Max", "amin": "Min"}
_LANES = {"sum": "SumLanes", "amax": "MaxLanes", "amin": "MinLanes"}


def neutral(op: str, dtype: DType) -> float | int:
    """What an empty reduction gives."""
    if op in ("sum", "prod"):
        return 0 if op == "sum" else 1
    low = op == "amax"
    if dtype.is_float:
        return float("-inf") if low else float("inf")
    return -(2**31) if low else 2**31 - 1


class Reductions:
    """Folds tiles. Extents are texts, as accumulators have those of a whole tile."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer

    def tile(
        self, op: str, v: Value, over: tuple[bool, bool], rows: str, cols: str, cn: str = "cn"
    ) -> Value:
        """`v` reduced over the rows, the columns or both (those that it lives on)."""
        if over[0] and v.lanes is Lanes.FULL:
            v = self._rows(op, v, rows, cn)
        elif over[0] and v.lanes is Lanes.ROW:
            return self._line(op, v, rows, "tileRows", Lanes.ONE)
        if over[1] and v.lanes is Lanes.FULL:
            return self._line(op, v, cols, "pitch", Lanes.ROW, rows)
        if over[1] and v.lanes is Lanes.COL:
            return self._line(op, v, cols, "pitch", Lanes.ONE)
        return v

    def _rows(self, op: str, v: Value, rows: str, cn: str) -> Value:
        w = self.w
        scratch, made = w.new(v.ctype, Lanes.FULL), w.new(v.ctype, Lanes.COL)
        text = (
            f"FoldRows<{_FOLDS[op]}Op>({made.token}, {v.token}, {scratch.token}, {rows}, pitch, "
            f"{cn});"
        )
        w.step(text, (v,), (scratch, made))
        return made

    def _line(self, op: str, v: Value, cols: str, pitch: str, to: Lanes, rows: str = "1") -> Value:
        """Each row to one element: at most 64 lanes first, then those."""
        w = self.w
        wide = w.new(v.ctype, Lanes.WIDE if to is Lanes.ROW else Lanes.BLOCK)
        row = Lanes.ROW if v.lanes is Lanes.ROW else Lanes.HALF
        scratch = w.new(v.ctype, row)
        w.step(
            f"FoldCols<{_FOLDS[op]}Op>({wide.token}, {v.token}, {scratch.token}, {rows}, {cols}, "
            f"{pitch});",
            (v,),
            (wide, scratch),
        )
        made = w.new(v.ctype, to)
        w.step(f"Duplicate({made.token}, static_cast<{v.ctype}>(0), {w.count(to)});", (), (made,))
        lanes = f"AtMost(64, {cols})"
        if v.ctype == "float" and op in _LANES:
            text = f"{_LANES[op]}({made.token}, {wide.token}, {rows}, {lanes});"
        else:
            text = f"ScalarLanes<{_FOLDS[op]}Op>({made.token}, {wide.token}, {rows}, {lanes});"
        w.step(text, (made, wide), (made,))
        return made

    def accumulator(self, op: str, dtype: DType, ctype: str, lanes: Lanes) -> Value:
        """A neutral tile; lanes that no tile reaches stay neutral."""
        count = {Lanes.FULL: "tileLanes", Lanes.COL: "tileCols", Lanes.ROW: "tileRows"}.get(
            lanes, str(self.w.unit_lanes)
        )
        made = self.w.new(ctype, lanes)
        made.pinned = True
        text = f"Duplicate({made.token}, {literal(neutral(op, dtype), ctype)}, {count});"
        self.w.step(text, (), (made,))
        return made

    def accumulate(self, op: str, total: Value, v: Value) -> None:
        """Another tile into the accumulator."""
        kind = f"<{_FOLDS[op]}Op>"
        shape = {
            Lanes.FULL: "rows, cols, pitch",
            Lanes.COL: "1, cols, pitch",
            Lanes.ROW: "1, rows, rows",
        }.get(total.lanes, "1, 1, 1")
        self.w.step(
            f"AccumulateTile{kind}({total.token}, {v.token}, {shape});", (total, v), (total,)
        )
