"""Text of loads: scalars, contiguous vectors, gathers, with guards and checked indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from kernel_gen.codegen.cpu.statements.address import Addresses, is_affine
from kernel_gen.codegen.cpu.statements.ops import OpWriter
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.vectors.moves import load_function
from kernel_gen.codegen.cpu.vectors.partial import every_second, window_load
from kernel_gen.codegen.cpu.vectors.stored import scalar_load
from kernel_gen.codegen.cpu.vectors.types import vector_type
from kernel_gen.codegen.flat.linear import FlatLoad, dim_text
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Guard
from kernel_gen.ir.types import Dim

Fresh = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Reader:
    """Writes loads; `fresh` makes variable names."""

    ops: OpWriter
    addresses: Addresses
    fresh: Fresh

    def read(self, load: FlatLoad, stored: DType, axis: str | None, scope: Scope) -> Value:
        """The loaded value, in the dtype in which `stored` computes.

        `axis`: the vector axis if the load uses it. Helper variables are declared in `scope`.
        """
        by_lane = axis is not None or self._reads_vector(load, scope)
        text = (
            self._vector(load, stored, axis, scope)
            if by_lane
            else self._scalar(load, stored, scope)
        )
        return Value(text, stored.compute, by_lane)

    def _reads_vector(self, load: FlatLoad, scope: Scope) -> bool:
        used = load.at.statements().union(*(g.index.statements() for g in load.guards))
        found = (scope.find(s) for s in used)
        return any(value is not None and value.vector for value in found)

    def _scalar(self, load: FlatLoad, stored: DType, scope: Scope) -> str:
        at = self.addresses.offset(load.at, scope)
        text = scalar_load(self.ops.unit, stored, f"b{load.buffer}[{at}]")
        conditions = [self.addresses.guard(g, scope) for g in load.guards]
        if not conditions:
            return text
        fill = self.ops.literal(load.fill, stored.compute).text
        return f"({' && '.join(conditions)} ? {text} : {fill})"

    def _vector(self, load: FlatLoad, stored: DType, axis: str | None, scope: Scope) -> str:
        lane_guards = [g for g in load.guards if self.addresses.varies(g.index, axis, scope)]
        uniform = [self.addresses.guard(g, scope) for g in load.guards if g not in lane_guards]
        step = self._step(load, axis, scope)
        whole = self._whole(load, stored, step, scope)
        if whole is not None and not load.guards:
            return whole
        name = self.fresh("g")
        fill = self.ops.broadcast(self.ops.literal(load.fill, stored.compute)).text
        scope.add(f"{self.ops.c_type(stored.compute, vector=True)} {name} = {fill};")
        if step == 1 and lane_guards and _is_window(lane_guards, axis):
            body = f"{name} = {self._window(load, stored, lane_guards, scope)};"
        else:
            whole = (
                f"{name} = {whole};" if whole else self._lane_loop(load, stored, [], name, scope)
            )
            body = whole
            if lane_guards:
                rest = self._lane_loop(load, stored, lane_guards, name, scope)
                body = self._choose(whole, rest, lane_guards, axis, scope)
        if uniform:
            inner = body.replace("\n", "\n  ")
            body = f"if ({' && '.join(uniform)}) {{\n  {inner}\n}}"
        scope.add(body)
        return name

    def _step(self, load: FlatLoad, axis: str | None, scope: Scope) -> int | None:
        """Elements from one lane to the next in memory, None if that is not the same for all."""
        if axis is None or not load.at.is_affine_in(axis):
            return None
        found = (scope.find(s) for s in load.at.statements())
        if any(value is not None and value.vector for value in found):
            return None
        return load.at.coeff(axis).const

    def _whole(self, load: FlatLoad, stored: DType, step: int | None, scope: Scope) -> str | None:
        """All (live) lanes by one load; None if there is none for this step."""
        if step == 1:
            return self._contiguous(load, stored, scope)
        if step == 2 and scope.live_lanes() is None and self.ops.lanes.count > 1:
            function = every_second(self.ops.unit, stored, self.ops.lanes)
            return f"{function}(b{load.buffer} + {self.addresses.offset(load.at, scope)})"
        return None

    def _choose(
        self, whole: str, rest: str, guards: list[Guard], axis: str | None, scope: Scope
    ) -> str:
        """All lanes inside: `whole`; else `rest`."""
        if axis is None or any(not is_affine(g.index, axis) for g in guards):
            return rest
        ends = ("0", f"({self._live(scope)} - 1)")
        inside = [self.addresses.guard(g, scope, lane) for lane in ends for g in guards]
        return f"if ({' && '.join(inside)}) {{ {whole} }}\nelse {{\n  {rest}\n}}"

    def _window(self, load: FlatLoad, stored: DType, guards: list[Guard], scope: Scope) -> str:
        """Neighbours in memory, of which the lanes that all guards let through are read."""
        lows, highs = zip(*(self.addresses.window(g, scope) for g in guards), strict=True)
        first, end = lows[0], self._live(scope)
        for low in lows[1:]:
            first = f"({first} > {low} ? {first} : {low})"
        for high in highs:
            end = f"({end} < {high} ? {end} : {high})"
        filled = load.fill != 0 or math.copysign(1, load.fill) < 0
        function = window_load(self.ops.unit, stored, self.ops.lanes, filled=filled)
        fill = self.ops.broadcast(self.ops.literal(load.fill, stored.compute)).text
        at = f"b{load.buffer} + {self.addresses.offset(load.at, scope)}"
        return f"{function}({at}, {first}, {end}{f', {fill}' if filled else ''})"

    def _contiguous(self, load: FlatLoad, stored: DType, scope: Scope) -> str:
        part = scope.live_lanes()
        function = load_function(self.ops.unit, stored, self.ops.lanes, partial=part is not None)
        extra = f", {part}" if part is not None else ""
        return f"{function}(b{load.buffer} + {self.addresses.offset(load.at, scope)}{extra})"

    def _lane_loop(
        self, load: FlatLoad, stored: DType, guards: list[Guard], name: str, scope: Scope
    ) -> str:
        at = self.addresses.offset(load.at, scope, lane="l")
        element = scalar_load(self.ops.unit, stored, f"b{load.buffer}[{at}]")
        if stored is DType.BOOL:
            element = f"-(int){element}"
        conditions = [self.addresses.guard(g, scope, lane="l") for g in guards]
        limit = scope.live_lanes()
        if limit is not None:
            conditions.insert(0, f"l < {limit}")
        check = f"if ({' && '.join(conditions)}) " if conditions else ""
        return f"for (int l = 0; l < {self.ops.lanes.count}; l++) {check}{name}[l] = {element};"

    def checked(self, value: Value, extent: Dim, scope: Scope) -> str:
        """Expression of an index value that lies within its dimension.

        An index outside sets `status` (torch raises an error) and reads element 0 instead.
        """
        limit = dim_text(extent)
        if not value.vector:
            return f"{self._checker()}({value.text}, {limit}, &status)"
        return f"{self._vector_checker(value)}({value.text}, {limit}, {self._live(scope)}, &status)"

    def _live(self, scope: Scope) -> str:
        return scope.live_lanes() or str(self.ops.lanes.count)

    def _checker(self) -> str:
        return self.ops.unit.helper(
            "gaf_checked",
            "static inline gaf_i64 gaf_checked(gaf_i64 i, gaf_i64 n, int *status) {\n"
            "  if (i >= 0 && i < n) return i;\n  *status = 1;\n  return 0;\n}",
        )

    def _vector_checker(self, value: Value) -> str:
        scalar, count = self._checker(), self.ops.lanes.count
        given = self.ops.c_type(value.dtype, vector=True)
        kind = vector_type(self.ops.unit, DType.I64, count)
        name = f"gaf_checked_{given.removeprefix('gaf_')}"
        return self.ops.unit.helper(
            name,
            f"static inline {kind} {name}({given} i, gaf_i64 n, int live, int *status) {{\n"
            f"  {kind} r = {{}};\n"
            f"  for (int l = 0; l < {count}; l++) if (l < live) r[l] = {scalar}(i[l], n, status);\n"
            "  return r;\n}",
        )


def _is_window(guards: list[Guard], axis: str | None) -> bool:
    """Whether each guard lets neighbouring lanes through."""
    return axis is not None and all(
        is_affine(g.index, axis) and g.index.coeff(axis) == 1 for g in guards
    )
