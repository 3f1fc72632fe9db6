"""Loops over a phase's rows: sharing among threads, blocks of rows, remainders."""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.codegen.cpu.frame import Part, split_over_threads
from kernel_gen.codegen.cpu.reductions.rows import RowEmitter
from kernel_gen.codegen.cpu.reductions.skewed import emit_skewed
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.flat.linear import FlatNest

_ENOUGH_TASKS = 64  # rows beyond which further outer axes become plain loops inside a task


def emit_phase(rows: RowEmitter, root: Scope) -> None:
    """The phase's loops, from the function scope inwards."""
    if rows.config.skew:
        emit_skewed(rows, root)
        return
    nest, phase, config = rows.nest, rows.phase, rows.config
    blocked = _blocked_axis(rows)
    step = rows.lanes * config.units if rows.row_vector else config.units
    outer = [a for a in phase.outer if a != blocked]
    if rows.crossing is not None:
        rows.crossing.start(root)
    if config.split:
        scopes = _nested(rows, root, outer)
        if blocked is not None:
            name = rows.emitter.fresh("i")
            extent = nest.extent_text(blocked)
            head = f"for (gaf_i64 {name} = 0; {name} < {extent}; {name} += {step}) {{"
            scopes.append(scopes[-1].open(head, {blocked: Binding(name)}))
    else:
        shared, inner = _tasks(nest, outer)
        parts = [Part(a, nest.extent_text(a)) for a in shared]
        if blocked is not None:
            count = nest.extent_text(blocked)
            parts.append(Part(blocked, f"({count} + {step - 1}) / {step}", step))
        scopes = _nested(rows, split_over_threads(root, parts, rows.emitter.fresh("t")), inner)
    _block(rows, scopes[-1], blocked)
    for scope in reversed(scopes):
        if scope is not root:
            scope.close()
    if rows.crossing is not None:
        rows.crossing.finish(root)


def _blocked_axis(rows: RowEmitter) -> str | None:
    """The outer axis along which several rows are in flight."""
    if rows.row_vector:
        return rows.config.vector
    return rows.phase.outer[-1] if rows.phase.outer else None


def _tasks(nest: FlatNest, outer: list[str]) -> tuple[list[str], list[str]]:
    """Axes whose product is shared among threads, and those that stay loops inside a task."""
    shared: list[str] = []
    inner: list[str] = []
    tasks = 1
    for axis in outer:
        (shared if tasks < _ENOUGH_TASKS else inner).append(axis)
        extent = nest.extent(axis)
        tasks *= extent if isinstance(extent, int) else _ENOUGH_TASKS
    return shared, inner


def _nested(rows: RowEmitter, scope: Scope, axes: list[str]) -> list[Scope]:
    scopes = [scope]
    for axis in axes:
        name = rows.emitter.fresh("i")
        head = f"for (gaf_i64 {name} = 0; {name} < {rows.nest.extent_text(axis)}; {name}++) {{"
        scopes.append(scopes[-1].open(head, {axis: Binding(name)}))
    return scopes


def _block(rows: RowEmitter, scope: Scope, blocked: str | None) -> None:
    """One block of rows: all of them, or what is left of them at the axis's end."""
    if blocked is None:
        rows.emit(scope, [{}], None)
        return
    start = scope.binder(blocked).axes.pop(blocked).text
    width = rows.lanes if rows.row_vector else 1
    units, extent = rows.config.units, rows.nest.extent(blocked)
    step = width * units
    full = [
        {blocked: Binding(f"({start} + {u * width})" if u else start, rows.row_vector)}
        for u in range(units)
    ]
    if isinstance(extent, int) and extent % step == 0:
        rows.emit(scope, full, None)
        return
    whole = scope.open(f"if ({start} + {step} <= {rows.nest.extent_text(blocked)}) {{")
    rows.emit(whole, full, None)
    whole.close()
    rest = scope.open("else {")
    _remainder(rows, rest, blocked, start, width)
    rest.close()


def _remainder(rows: RowEmitter, scope: Scope, blocked: str, start: str, width: int) -> None:
    """Single rows (or vectors of rows), then a partial vector of rows."""
    single = RowEmitter(
        rows.emitter, rows.phase, replace(rows.config, units=1), rows.scratch, rows.label
    )
    single.crossing = rows.crossing  # the same accumulators, cut into blocks alike
    extent = rows.nest.extent_text(blocked)
    name = rows.emitter.fresh("i")
    scope.add(f"gaf_i64 {name} = {start};")
    if rows.config.units > 1:
        loop = scope.open(f"for (; {name} + {width} <= {extent}; {name} += {width}) {{")
        single.emit(loop, [{blocked: Binding(name, rows.row_vector)}], None)
        loop.close()
    if rows.row_vector:
        tail = scope.open(f"if ({name} < {extent}) {{")
        single.emit(tail, [{blocked: Binding(name, True)}], f"(int)({extent} - {name})")
        tail.close()
