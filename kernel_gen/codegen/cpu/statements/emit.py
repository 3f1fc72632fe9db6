"""The statement emitter: C++ text of a nest's statements at a point of some loops.

    emitter = Emitter(nest, unit, lanes)
    outer = emitter.root()                         # function scope
    row = outer.open("for (...) {", {"i0": Binding("i")})
    block = row.open("for (...) {", {"i1": Binding("j", vector=True)})
    emitter.store(nest.stores[0], block)           # emits what the store needs, hoisted outward
    block.close(); row.close()                     # outer.text holds the lines

A statement is emitted once, in the outermost scope that binds all axes it lives on, so row values
never move into the column loop. Values that a template holds in registers (a reduction's result, a
tile of a product) are announced by `Scope.define`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernel_gen.codegen.cpu.statements.address import Addresses
from kernel_gen.codegen.cpu.statements.division import is_smooth, reciprocal
from kernel_gen.codegen.cpu.statements.narrow import cast_source, compared_position
from kernel_gen.codegen.cpu.statements.ops import COMPARE, OpWriter
from kernel_gen.codegen.cpu.statements.reads import Reader
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.statements.writes import Writer
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, Lanes, vector_type
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStore, flat_operands, own_axes
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr
from kernel_gen.ir.index import ValueTerm
from kernel_gen.ir.loopnest import BufferRole, Compute, IndexValue

__all__ = ["Binding", "Emitter", "Scope"]


class Emitter:
    """Writes statements of one nest into scopes. `stream` holds outputs to store non-temporally;
    `first_name` keeps the names of several emitters of one function apart."""

    def __init__(
        self,
        nest: FlatNest,
        unit: Unit,
        lanes: Lanes,
        stream: frozenset[int] = frozenset(),
        first_name: int = 0,
        shared: frozenset[int] = frozenset(),
    ) -> None:
        """`stream` are outputs stored past the cache; `shared` are buffers that may share memory
        with another one."""
        self.nest = nest
        self.unit = unit
        self.lanes = lanes
        self.ops = OpWriter(unit, lanes)
        self.live_axes = nest.statement_axes()
        self.addresses = Addresses(unit, self._index_operand)
        self.names = first_name
        self._shared = shared
        self._stream = stream
        self._smooth = is_smooth(nest)
        self._reader = Reader(self.ops, self.addresses, self.fresh)
        self._writer = Writer(self.ops, self.addresses, stream)

    def on(self, part: FlatNest, plain: frozenset[int] = frozenset()) -> Emitter:
        """An emitter of `part`, whose statements are this nest's at other positions, into scopes
        of the same function; outputs in `plain` are not stored past the cache."""
        stream = self._stream - plain
        return Emitter(part, self.unit, self.lanes, stream, self.names, self._shared)

    def streams(self, outputs: frozenset[int]) -> bool:
        """Whether some of these are stored past the cache."""
        return not self._stream.isdisjoint(outputs)

    def root(self) -> Scope:
        """Function scope: typed operand pointers and symbols are declared in it."""
        scope = Scope()
        for i, buffer in enumerate(self.nest.buffers):
            c = SCALAR_C[buffer.type.dtype]
            const = "" if buffer.role is BufferRole.OUTPUT else "const "
            own = "" if i in self._shared else "__restrict "
            scope.add(f"{const}{c} *{own}b{i} = ({const}{c} *)args->operands[{i}];")
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
                return self._index_value(statement, scope)
            case Compute(op="const"):
                return self.ops.literal(_number(statement.attrs), statement.dtype)
            case Compute(op="cast"):
                value = self.value(cast_source(self.nest, statement), scope)
                text = self.ops.cast(value, statement.dtype)
                return self._declared(scope, text, statement.dtype, value.vector)
            case Compute():
                compared = self._compared_position(statement, scope)
                if compared is not None:
                    return compared
                args = [self.value(a, scope) for a in statement.args]
                live = scope.live_lanes() or ""
                op = self._product_for(statement, args)
                text = self.ops.compute(op, statement.dtype, args, live)
                return self._declared(scope, text, statement.dtype, any(a.vector for a in args))
            case _:
                raise InternalError(f"statement {position} must be defined by the template")

    def _product_for(self, statement: Compute, args: list[Value]) -> str:
        """The op to write for a statement: "mul" for a division by a constant that may be one,
        whose factor then takes the divisor's place in `args`."""
        if statement.op != "div" or not args[0].vector or args[1].const is None:
            return statement.op
        factor = reciprocal(args[1].const, smooth=self._smooth)
        if factor is None or not statement.dtype.is_float:
            return statement.op
        args[1] = self.ops.literal(factor, args[1].dtype)
        return "mul"

    def _compared_position(self, statement: Compute, scope: Scope) -> Value | None:
        """A comparison of positions along the vector with one number, in 32 bits."""
        axis = self._bound_vector(scope)
        found = compared_position(self.nest, statement, axis)
        if found is None or axis is None:
            return None
        relation, index, other = found
        value = self.value(other, scope)
        if value.vector or value.dtype is not DType.I64:
            return None
        kind = vector_type(self.unit, DType.I32, self.lanes.count)
        steps = ", ".join(str(i * index.coeff(axis)) for i in range(self.lanes.count))
        first = self.addresses.index(index, scope)
        clamp = self.unit.helper(
            "gaf_clamp_i32",
            "static inline int gaf_clamp_i32(gaf_i64 x) { return x < -0x7fffffffLL ? -0x7fffffff : "
            "x > 0x7fffffffLL ? 0x7fffffff : (int)x; }",
        )
        positions = f"(({kind}){{{steps}}} + (int){first})"
        text = f"{positions} {COMPARE[relation]} ({kind}{{}} + {clamp}({value.text}))"
        mask = self.ops.c_type(DType.BOOL, vector=True)
        return self._declared(
            scope, f"__builtin_convertvector({text}, {mask})", DType.BOOL, vector=True
        )

    def _declared(self, scope: Scope, text: str, dtype: DType, vector: bool) -> Value:
        return Value(self.declare(scope, dtype, text, vector=vector), dtype, vector)

    def _bound_vector(self, scope: Scope) -> str | None:
        """The axis that is bound as a vector here."""
        for axis in self.nest.axes:
            binding = scope.binding(axis.name)
            if binding is not None and binding.vector:
                return axis.name
        return None

    def _vector_axis(self, scope: Scope, axes: frozenset[str]) -> str | None:
        """The axis among `axes` that is bound as a vector."""
        for axis in sorted(axes):
            binding = scope.binding(axis)
            if binding is None:
                raise InternalError(f"axis {axis} is not bound here")
            if binding.vector:
                return axis
        return None

    def _load(self, load: FlatLoad, scope: Scope) -> Value:
        self._check_positions(load.values, scope)
        axis = self._vector_axis(scope, own_axes(load))
        stored = self.nest.buffers[load.buffer].type.dtype
        held = self._reader.read(load, stored, axis, scope)
        return self._declared(scope, self.ops.cast(held, load.dtype), load.dtype, held.vector)

    def _check_positions(self, terms: Iterable[ValueTerm], scope: Scope) -> None:
        """Puts each position that a value holds within its dimension, once per value and size."""
        for term in terms:
            if term.extent is None or scope.find(term) is not None:
                continue
            value, holder = self.value(term.statement, scope), scope.holder(term.statement)
            text = self._reader.checked(value, term.extent, holder)
            holder.define(term, self._declared(holder, text, DType.I64, value.vector))

    def _index_operand(self, term: ValueTerm, scope: Scope) -> Value:
        """The value an index reads: the checked one where there is one."""
        return scope.find(term) or self.value(term.statement, scope)

    def _index_value(self, statement: IndexValue, scope: Scope) -> Value:
        self._check_positions(sorted(statement.index.values(), key=repr), scope)
        axis = self._vector_axis(scope, statement.index.axes())
        if not self.addresses.varies(statement.index, axis, scope):
            plain = Value(self.addresses.index(statement.index, scope), DType.I64, False)
            text = self.ops.cast(plain, statement.dtype)
            return self._declared(scope, text, statement.dtype, False)
        name = self.fresh("g")
        kind = vector_type(self.unit, DType.I64, self.lanes.count)
        lane = self.addresses.index(statement.index, scope, lane="l")
        scope.add(f"{kind} {name};")
        scope.add(f"for (int l = 0; l < {self.lanes.count}; l++) {name}[l] = {lane};")
        text = self.ops.cast(Value(name, DType.I64, True), statement.dtype)
        return self._declared(scope, text, statement.dtype, True)

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

    def stores(self, scope: Scope) -> None:
        """Emits all stores, after all that they need: one may write what another one's value reads
        (`in_place`)."""
        if self._shared:
            for store in self.nest.stores:
                self.value(store.statement, scope)
        for store in self.nest.stores:
            self.store(store, scope)

    def store(self, store: FlatStore, scope: Scope) -> None:
        """Emits a store and everything it needs."""
        value = self.value(store.statement, scope)
        stored = self.nest.buffers[store.buffer].type.dtype
        held = Value(self.ops.cast(value, stored.compute), stored.compute, value.vector)
        axes = store.at.axes().union(*(g.index.axes() for g in store.guards))
        self._writer.write(store, stored, held, self._vector_axis(scope, axes), scope)


def _number(attrs: tuple[tuple[str, Attr], ...]) -> float | int | bool:
    value = dict(attrs)["value"]
    if not isinstance(value, bool | int | float):
        raise InternalError(f"constant {value!r} is no number")
    return value
