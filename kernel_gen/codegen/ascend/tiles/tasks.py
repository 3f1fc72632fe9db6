"""A task's tile: where it starts along each axis, and how many rows, columns and lanes it has."""

from __future__ import annotations

from kernel_gen.codegen.ascend.instructions.writer import Writer
from kernel_gen.codegen.ascend.tiles.roles import Roles, extent_text
from kernel_gen.codegen.ascend.tiles.split_reduce import PART
from kernel_gen.codegen.flat.linear import FlatNest


class Tile:
    """Writes the declarations of a task. `bound` gives the text of each axis's position."""

    def __init__(self, writer: Writer, nest: FlatNest, roles: Roles, unit_lanes: int) -> None:
        self._w, self.nest, self.roles, self.unit_lanes = writer, nest, roles, unit_lanes
        self.bound: dict[str, str] = {}

    def is_task(self, axis: str | None) -> bool:
        return axis is not None and axis in self.roles.phase.outer

    def extent(self, axis: str) -> str:
        return extent_text(self.nest, axis)

    def declare(self, text: str) -> None:
        self._w.step(text, vector=False)

    def open(self) -> None:
        """At the start of a task: where its tile lies, and its numbers of lanes."""
        roles = self.roles
        self.declare("int64_t left = task;")
        if self.is_task(roles.col):
            self.declare("const int64_t col0 = left % colTiles * tileWidth;")
            self.declare("left /= colTiles;")
        if self.is_task(roles.row):
            self.declare("const int64_t row0 = left % rowTiles * tileHeight;")
            self.declare("left /= rowTiles;")
        for axis in reversed(roles.outer):
            extent = self.extent(axis)
            self._digit(axis, extent)
            self.bound[axis] = axis
        if PART.name in roles.phase.outer:
            whole, parts = self.extent(roles.walked[0]), self.extent(PART.name)
            self.declare(f"const int64_t partLow = {whole} * {PART.name} / {parts};")
            self.declare(f"const int64_t partHigh = {whole} * ({PART.name} + 1) / {parts};")
        self._open_axis(roles.row, "row")
        self._open_axis(roles.col, "col")
        self._counts()

    def _digit(self, axis: str, extent: str) -> None:
        """A task's place on an outer axis; one that is known to be empty has no tasks."""
        if extent == "0":
            self.declare(f"const int64_t {axis} = 0;")
            return
        self.declare(f"const int64_t {axis} = left % {extent};")
        self.declare(f"left /= {extent};")

    def _open_axis(self, axis: str | None, name: str) -> None:
        """Binds the tile's axis where it is not walked in steps."""
        if axis is None:
            self.declare(f"const int32_t {name}s = 1;")
            return
        size = "tileHeight" if name == "row" else "tileWidth"
        if axis in self.roles.walked:
            return
        if self.is_task(axis):
            self.bound[axis] = f"{name}0"
            self.declare(f"const int32_t {name}s = AtMost({size}, {self.extent(axis)} - {name}0);")
        else:
            self.bound[axis] = "0"
            self.declare(f"const int32_t {name}s = static_cast<int32_t>({self.extent(axis)});")

    def _counts(self) -> None:
        """Numbers of lanes, once `rows` and `cols` are known."""
        u = self.unit_lanes
        row_known = self.roles.row not in self.roles.walked
        col_known = self.roles.col not in self.roles.walked
        if row_known:
            self.declare(f"const int32_t rn = UpTo(rows, {u});")
        if row_known and col_known:
            self._both_counts()
        elif col_known:
            self.declare(f"const int32_t cn = tileHeight > 1 ? UpTo(pitch, {u}) : UpTo(cols, {u});")

    def _both_counts(self) -> None:
        u = self.unit_lanes
        self.declare(f"const int32_t n = rows > 1 ? UpTo(rows * pitch, {u}) : UpTo(cols, {u});")
        if self.roles.row not in self.roles.walked or self.roles.col in self.roles.walked:
            self.declare(f"const int32_t cn = rows > 1 ? UpTo(pitch, {u}) : UpTo(cols, {u});")

    def counts_in_loop(self) -> None:
        """Numbers of lanes within the loops over walked axes."""
        u, walked = self.unit_lanes, self.roles.walked
        if self.roles.row in walked:
            self.declare(f"const int32_t rn = UpTo(rows, {u});")
        if self.roles.row in walked or self.roles.col in walked:
            self.declare(f"const int32_t n = rows > 1 ? UpTo(rows * pitch, {u}) : UpTo(cols, {u});")
        if self.roles.col in walked:
            self.declare(f"const int32_t cn = rows > 1 ? UpTo(pitch, {u}) : UpTo(cols, {u});")
