"""The statement emitter: C++ text of a nest's statements at a point of some loops.

    emitter = Emitter(nest, unit, lanes)
    outer = emitter.root()                         # function scope
    row = outer.open("for (...) {", {"i0": Binding("i")})
    block = row.open("for (...) {", {"i1": Binding("j", vector=True)})
    emitter.store(nest.stores[0], block)           # emits what the store needs, hoisted outward
    outer.lines()                                  # the text

A `Scope` is a block of text in which axes are bound to C expressions. A statement is emitted once,
in the outermost scope that binds all axes it lives on, so row values never move into the column
loop. At most one axis is bound as a vector: `Binding.text` is the position of its first lane.

Other templates (the matmul's prologue and epilogue) bind axes to their own loop variables, announce
values they hold in registers by `Scope.define`, and ask for stores or values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_gen.codegen.cpu.linear import (
    FlatLoad,
    FlatNest,
    FlatStore,
    Linear,
    flat_operands,
    own_axes,
)
from kernel_gen.codegen.cpu.ops import OpWriter, Value
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectypes import (
    SCALAR_C,
    Lanes,
    can_stream,
    load_function,
    scalar_load,
    scalar_store,
    store_function,
    vector_type,
)
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Mod, Term, ValueTerm
from kernel_gen.ir.loopnest import BufferRole, Compute, Guard, IndexValue
from kernel_gen.ir.types import Sym


@dataclass(frozen=True, slots=True)
class Binding:
    """What an axis is in a scope: a C expression, of the first lane if `vector`."""

    text: str
    vector: bool = False


@dataclass(slots=True, eq=False)
class Scope:
    """A block of generated text; nested scopes close into their parent's lines.

    `part` is the C expression of how many lanes count where the vector is a tail.
    """

    parent: Scope | None = None
    axes: dict[str, Binding] = field(default_factory=dict)
    part: str | None = None
    depth: int = 0
    head_lines: int = 0
    text: list[str] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)

    def open(
        self, head: str, axes: dict[str, Binding] | None = None, part: str | None = None
    ) -> Scope:
        """A nested block that starts with `head` (a line ending in a brace, pragmas before it)."""
        inner = Scope(self, dict(axes or {}), part, self.depth + 1)
        inner.text += head.split("\n")
        inner.head_lines = len(inner.text)
        return inner

    def inline(self, axes: dict[str, Binding]) -> Scope:
        """A scope without braces: its lines go straight into this block."""
        inner = Scope(self, dict(axes), depth=self.depth + 1)
        inner.text = self.text
        return inner

    def close(self) -> None:
        """Appends the block to its parent."""
        if self.parent is None:
            raise InternalError("the function scope does not close")
        head, body = self.text[: self.head_lines], self.text[self.head_lines :]
        self.parent.text += [*head, *("  " + line for line in body), "}"]

    def add(self, line: str) -> None:
        self.text += line.split("\n")

    def define(self, statement: int, value: Value) -> None:
        """Announces a value that is held in a C variable of this scope."""
        self.values[statement] = value

    def _chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def outermost(self) -> Scope:
        """The function scope."""
        return list(self._chain())[-1]

    def binding(self, axis: str) -> Binding | None:
        return next((s.axes[axis] for s in self._chain() if axis in s.axes), None)

    def binder(self, axis: str) -> Scope:
        """The scope that binds `axis`."""
        for scope in self._chain():
            if axis in scope.axes:
                return scope
        raise InternalError(f"axis {axis} is not bound here")

    def find(self, statement: int) -> Value | None:
        return next((s.values[statement] for s in self._chain() if statement in s.values), None)

    def holder(self, statement: int) -> Scope:
        """The scope that holds the value of `statement`."""
        for scope in self._chain():
            if statement in scope.values:
                return scope
        raise InternalError(f"statement {statement} has no value here")

    def live_lanes(self) -> str | None:
        """How many lanes count here, None for all."""
        return next((s.part for s in self._chain() if s.part is not None), None)


class Emitter:
    """Writes statements of one nest into scopes. `stream` holds outputs to store non-temporally."""

    def __init__(
        self,
        nest: FlatNest,
        unit: Unit,
        lanes: Lanes,
        stream: frozenset[int] = frozenset(),
        first_name: int = 0,
    ) -> None:
        self.nest = nest
        self.unit = unit
        self.lanes = lanes
        self.ops = OpWriter(unit, lanes)
        self.stream = stream
        self.live_axes = nest.statement_axes()
        self.names = first_name

    def root(self) -> Scope:
        """Function scope: typed operand pointers and symbols are declared in it."""
        scope = Scope()
        for i, buffer in enumerate(self.nest.buffers):
            c = SCALAR_C[buffer.type.dtype]
            const = "" if buffer.role is BufferRole.OUTPUT else "const "
            scope.add(f"{const}{c} *__restrict b{i} = ({const}{c} *)args->operands[{i}];")
        for name in self.nest.symbols():
            scope.add(f"const gaf_i64 {name} = args->dims[{int(name[1:])}];")
        return scope

    def fresh(self, stem: str = "v") -> str:
        """A variable name that occurs once in the kernel."""
        self.names += 1
        return f"{stem}{self.names}"

    def declare(
        self, scope: Scope, dtype: DType, text: str, *, vector: bool, stem: str = "v"
    ) -> str:
        """Declares a constant variable and returns its name."""
        name = self.fresh(stem)
        scope.add(f"const {self.ops.c_type(dtype, vector)} {name} = {text};")
        return name

    def value(self, statement: int, scope: Scope) -> Value:
        """The value of a statement in `scope`, emitted where it belongs if it is not there yet."""
        for needed in self._missing(statement, scope):
            home = self._home(needed, scope)
            home.define(needed, self._emit(needed, home))
        found = scope.find(statement)
        if found is None:
            raise InternalError(f"statement {statement} was not emitted")
        return found

    def _missing(self, statement: int, scope: Scope) -> list[int]:
        """Statements still to emit for `statement`, operands first."""
        found: set[int] = set()
        todo = [statement]
        while todo:
            s = todo.pop()
            if s not in found and scope.find(s) is None:
                found.add(s)
                todo += flat_operands(self.nest.statements[s])
        return sorted(found)

    def _home(self, statement: int, scope: Scope) -> Scope:
        """The outermost scope that binds the statement's axes and sees all its operands."""
        operands = flat_operands(self.nest.statements[statement])
        places = [scope.holder(s) for s in operands]
        places += [scope.binder(a) for a in own_axes(self.nest.statements[statement])]
        return max(places, key=lambda s: s.depth, default=scope.outermost())

    def _emit(self, position: int, scope: Scope) -> Value:
        statement = self.nest.statements[position]
        match statement:
            case FlatLoad():
                return self._load(statement, scope)
            case IndexValue():
                return self._index_value(statement, position, scope)
            case Compute(op="const"):
                return self.ops.literal(_number(statement.attrs), statement.dtype)
            case Compute():
                args = [self.value(a, scope) for a in statement.args]
                live = scope.live_lanes() or ""
                text = self.ops.compute(statement.op, statement.dtype, args, live)
                vector = any(a.vector for a in args)
                name = self.declare(scope, statement.dtype, text, vector=vector)
                return Value(name, statement.dtype, vector)
            case _:
                raise InternalError(f"statement {position} must be defined by the template")

    def _vector_axis(self, scope: Scope, axes: frozenset[str]) -> str | None:
        """The axis among `axes` that is bound as a vector."""
        for axis in sorted(axes):
            binding = scope.binding(axis)
            if binding is None:
                raise InternalError(f"axis {axis} is not bound here")
            if binding.vector:
                return axis
        return None

    # ---- loads -------------------------------------------------------------------------------

    def _load(self, load: FlatLoad, scope: Scope) -> Value:
        stored = self.nest.buffers[load.buffer].type.dtype
        for used in sorted(
            load.at.statements().union(*(g.index.statements() for g in load.guards))
        ):
            self.value(used, scope)
        axes = load.at.axes().union(*(g.index.axes() for g in load.guards))
        axis = self._vector_axis(scope, axes)
        by_lane = axis is not None or self._reads_vector(load, scope)
        text = (
            self._vector_load(load, stored, axis, scope)
            if by_lane
            else self._scalar_load(load, stored, scope)
        )
        held = Value(text, _held(stored), by_lane)
        final = self.ops.cast(held, load.dtype)
        return Value(self.declare(scope, load.dtype, final, vector=by_lane), load.dtype, by_lane)

    def _reads_vector(self, load: FlatLoad, scope: Scope) -> bool:
        used = load.at.statements().union(*(g.index.statements() for g in load.guards))
        return any(self.value(s, scope).vector for s in used)

    def _scalar_load(self, load: FlatLoad, stored: DType, scope: Scope) -> str:
        at = self.address(load.at, scope)
        text = scalar_load(self.unit, stored, f"b{load.buffer}[{at}]")
        conditions = [self.guard(g, scope) for g in load.guards]
        if not conditions:
            return text
        fill = self.ops.literal(load.fill, _held(stored)).text
        return f"({' && '.join(conditions)} ? {text} : {fill})"

    def _vector_load(self, load: FlatLoad, stored: DType, axis: str | None, scope: Scope) -> str:
        """A vector expression; declares helper variables in `scope` where a branch is needed."""
        lane_guards = [g for g in load.guards if self._varies(g.index, axis, scope)]
        uniform = [self.guard(g, scope) for g in load.guards if g not in lane_guards]
        contiguous = (
            axis is not None
            and load.at.coeff(axis).const == 1
            and self._aligned_affine(load.at, axis)
            and not any(self.value(s, scope).vector for s in load.at.statements())
        )
        simple = self._contiguous(load, stored, scope) if contiguous else None
        if simple is not None and not load.guards:
            return simple
        name = self.fresh("g")
        kind = self.ops.c_type(_held(stored), vector=True)
        fill = self.ops.broadcast(self.ops.literal(load.fill, _held(stored))).text
        scope.add(f"{kind} {name} = {fill};")
        lanes = self._lane_loop(load, stored, lane_guards, name, scope)
        body = self._choose(simple, lanes, lane_guards, name, axis, scope)
        if uniform:
            scope.add(f"if ({' && '.join(uniform)}) {{\n  " + body.replace("\n", "\n  ") + "\n}")
        else:
            scope.add(body)
        return name

    def _choose(
        self,
        simple: str | None,
        lanes: str,
        guards: list[Guard],
        name: str,
        axis: str | None,
        scope: Scope,
    ) -> str:
        """Whole vector inside: plain load; whole vector outside: the fill; else lane by lane."""
        if simple is None or axis is None:
            return lanes
        if not guards:
            return f"{name} = {simple};"
        if any(not _is_affine(g.index, axis) for g in guards):
            return lanes
        last = f"{scope.live_lanes() or self.lanes.count} - 1"
        first_in = [self.guard(g, scope, lane="0") for g in guards]
        last_in = [self.guard(g, scope, lane=f"({last})") for g in guards]
        # both ends on the same wrong side of one guard: nothing is read
        outside = [self._both_outside(g, scope, f"({last})") for g in guards]
        inside = " && ".join(first_in + last_in)
        indented = lanes.replace("\n", "\n  ")
        return (
            f"if ({inside}) {name} = {simple};\n"
            f"else if (!({' || '.join(outside)})) {{\n  {indented}\n}}"
        )

    def _both_outside(self, guard: Guard, scope: Scope, last: str) -> str:
        first = self.index(guard.index, scope, lane="0")
        end = self.index(guard.index, scope, lane=last)
        high = guard.high.name if isinstance(guard.high, Sym) else str(guard.high)
        below = f"({first} < {guard.low} && {end} < {guard.low})"
        return f"{below} || ({first} >= {high} && {end} >= {high})"

    def _contiguous(self, load: FlatLoad, stored: DType, scope: Scope) -> str:
        at = self.address(load.at, scope)
        part = scope.live_lanes()
        function = load_function(self.unit, stored, self.lanes, partial=part is not None)
        extra = f", {part}" if part is not None else ""
        return f"{function}(b{load.buffer} + {at}{extra})"

    def _lane_loop(
        self, load: FlatLoad, stored: DType, guards: list[Guard], name: str, scope: Scope
    ) -> str:
        at = self.address(load.at, scope, lane="l")
        element = scalar_load(self.unit, stored, f"b{load.buffer}[{at}]")
        if stored is DType.BOOL:
            element = f"-(int){element}"
        conditions = [self.guard(g, scope, lane="l") for g in guards]
        limit = scope.live_lanes()
        if limit is not None:
            conditions.insert(0, f"l < {limit}")
        check = f"if ({' && '.join(conditions)}) " if conditions else ""
        return f"for (int l = 0; l < {self.lanes.count}; l++) {check}{name}[l] = {element};"

    def _varies(self, index: Index, axis: str | None, scope: Scope) -> bool:
        if axis is not None and axis in index.axes():
            return True
        return any(self.value(s, scope).vector for s in index.statements())

    def _aligned_affine(self, at: Linear, axis: str) -> bool:
        """Whether lanes are consecutive: the axis occurs in no division or remainder."""
        return at.is_affine_in(axis)

    # ---- indices -----------------------------------------------------------------------------

    def address(self, at: Linear, scope: Scope, lane: str | None = None) -> str:
        """C expression of an offset; with `lane` that of one lane, else of the first."""
        parts = []
        for term, coeff in at.terms:
            text = self._term(term, scope, lane)
            parts.append(text if coeff.const == 1 else f"{coeff.text()} * {text}")
        if at.const.terms or not parts:
            parts.append(at.const.text())
        return "(" + " + ".join(parts) + ")"

    def index(self, index: Index, scope: Scope, lane: str | None = None) -> str:
        """C expression of an index."""
        parts = [
            self._term(term, scope, lane)
            if coeff == 1
            else f"{coeff} * {self._term(term, scope, lane)}"
            for term, coeff in index.terms
        ]
        if index.const or not parts:
            parts.append(str(index.const))
        return "(" + " + ".join(parts) + ")"

    def _term(self, term: Term, scope: Scope, lane: str | None) -> str:
        match term:
            case AxisTerm():
                binding = scope.binding(term.axis)
                if binding is None:
                    raise InternalError(f"axis {term.axis} is not bound here")
                return f"({binding.text} + {lane})" if binding.vector and lane else binding.text
            case ValueTerm():
                value = self.value(term.statement, scope)
                return f"(gaf_i64){value.text}[{lane or 0}]" if value.vector else value.text
            case FloorDiv():
                inner = self.index(term.index, scope, lane)
                if _never_negative(term.index):
                    return f"({inner} / {term.divisor})"
                return f"{self._floor_helpers()}({inner}, {term.divisor})"
            case Mod():
                inner = self.index(term.index, scope, lane)
                if _never_negative(term.index):
                    return f"({inner} % {term.divisor})"
                return (
                    f"({inner} - {self._floor_helpers()}({inner}, {term.divisor}) * {term.divisor})"
                )

    def _floor_helpers(self) -> str:
        return self.unit.helper(
            "gaf_floordiv",
            "static inline gaf_i64 gaf_floordiv(gaf_i64 a, gaf_i64 b) "
            "{ return a / b - (a % b < 0); }",
        )

    def guard(self, guard: Guard, scope: Scope, lane: str | None = None) -> str:
        """C condition of a guard at one point."""
        text = self.index(guard.index, scope, lane)
        high = guard.high.name if isinstance(guard.high, Sym) else str(guard.high)
        return f"({text} >= {guard.low} && {text} < {high})"

    def _index_value(self, statement: IndexValue, position: int, scope: Scope) -> Value:
        axis = self._vector_axis(scope, statement.index.axes())
        if not self._varies(statement.index, axis, scope):
            text = self.ops.cast(
                Value(self.index(statement.index, scope), DType.I64, False), statement.dtype
            )
            return Value(
                self.declare(scope, statement.dtype, text, vector=False), statement.dtype, False
            )
        name = self.fresh("g")
        kind = vector_type(self.unit, DType.I64, self.lanes.count)
        lane = self.index(statement.index, scope, lane="l")
        scope.add(f"{kind} {name};")
        scope.add(f"for (int l = 0; l < {self.lanes.count}; l++) {name}[l] = {lane};")
        text = self.ops.cast(Value(name, DType.I64, True), statement.dtype)
        return Value(self.declare(scope, statement.dtype, text, vector=True), statement.dtype, True)

    def live_mask(self, live: str) -> str:
        """A mask of the first `live` lanes."""
        kind = self.ops.c_type(DType.BOOL, vector=True)
        lanes = ", ".join(str(i) for i in range(self.lanes.count))
        name = self.unit.helper(
            f"gaf_live_{kind}",
            f"static inline {kind} gaf_live_{kind}(int n) {{ return ({kind}){{{lanes}}} < "
            f"({SCALAR_C[self.lanes.mask]})n; }}",
        )
        return f"{name}({live})"

    # ---- stores ------------------------------------------------------------------------------

    def store(self, store: FlatStore, scope: Scope) -> None:
        """Emits a store and everything it needs."""
        value = self.value(store.statement, scope)
        stored = self.nest.buffers[store.buffer].type.dtype
        held = Value(self.ops.cast(value, _held(stored)), _held(stored), value.vector)
        axis = self._vector_axis(
            scope, store.at.axes().union(*(g.index.axes() for g in store.guards))
        )
        if axis is None:
            self._scalar_store(store, stored, held, scope)
            return
        vector = self.ops.broadcast(held)
        unit_stride = store.at.coeff(axis).const == 1 and store.at.is_affine_in(axis)
        if unit_stride and not store.guards:
            self._vector_store(store, stored, vector, scope)
        else:
            self._lane_store(store, stored, vector, scope)

    def _scalar_store(self, store: FlatStore, stored: DType, value: Value, scope: Scope) -> None:
        conditions = [self.guard(g, scope) for g in store.guards]
        check = f"if ({' && '.join(conditions)}) " if conditions else ""
        text = scalar_store(self.unit, stored, value.text)
        scope.add(f"{check}b{store.buffer}[{self.address(store.at, scope)}] = {text};")

    def _vector_store(self, store: FlatStore, stored: DType, value: Value, scope: Scope) -> None:
        part = scope.live_lanes()
        stream = (
            store.buffer in self.stream and part is None and can_stream(stored, self.lanes.count)
        )
        function = store_function(
            self.unit, stored, self.lanes, partial=part is not None, stream=stream
        )
        extra = f", {part}" if part is not None else ""
        at = self.address(store.at, scope)
        scope.add(f"{function}(b{store.buffer} + {at}, {value.text}{extra});")

    def _lane_store(self, store: FlatStore, stored: DType, value: Value, scope: Scope) -> None:
        name = self.declare(scope, _held(stored), value.text, vector=True)
        conditions = [self.guard(g, scope, lane="l") for g in store.guards]
        limit = scope.live_lanes()
        if limit is not None:
            conditions.insert(0, f"l < {limit}")
        check = f"if ({' && '.join(conditions)}) " if conditions else ""
        element = f"{name}[l] != 0" if stored is DType.BOOL else f"{name}[l]"
        text = scalar_store(self.unit, stored, element)
        at = self.address(store.at, scope, lane="l")
        scope.add(
            f"for (int l = 0; l < {self.lanes.count}; l++) {check}b{store.buffer}[{at}] = {text};"
        )


def _held(stored: DType) -> DType:
    """The dtype in which a loaded element is held: narrow floats as fp32."""
    return stored.compute


def _number(attrs: tuple[tuple[str, Attr], ...]) -> float | int | bool:
    value = dict(attrs)["value"]
    if not isinstance(value, bool | int | float):
        raise InternalError(f"constant {value!r} is no number")
    return value


def _is_affine(index: Index, axis: str) -> bool:
    inner = [t for t, _ in index.terms if isinstance(t, FloorDiv | Mod)]
    return not any(axis in t.index.axes() for t in inner) and not index.statements()


def _never_negative(index: Index) -> bool:
    """Whether no value of the index is negative, as far as its form tells."""
    terms_ok = all(
        coeff > 0
        and (
            isinstance(t, AxisTerm) or (isinstance(t, FloorDiv | Mod) and _never_negative(t.index))
        )
        for t, coeff in index.terms
    )
    return terms_ok and index.const >= 0
