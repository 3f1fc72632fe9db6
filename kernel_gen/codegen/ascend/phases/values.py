"""The values of a phase's statements, each computed once for the body that needs it first and for
the bodies within."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kernel_gen.codegen.ascend.instructions.elementwise import Elementwise, constant
from kernel_gen.codegen.ascend.instructions.steps import Lanes, Step, Value, lanes_of
from kernel_gen.codegen.ascend.instructions.writer import Const, Operand, Writer
from kernel_gen.codegen.ascend.moves.loads import Loads
from kernel_gen.codegen.ascend.moves.positions import Positions
from kernel_gen.codegen.ascend.moves.stores import Shared
from kernel_gen.codegen.ascend.tiles.tasks import Tile
from kernel_gen.codegen.flat.linear import FlatLoad, flat_operands
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Compute, IndexValue, Reduce


class Values:
    """Tiles of statements. `shared` are reductions that an earlier phase has left in the workspace,
    `live` the axes on which each statement's value lives."""

    def __init__(
        self,
        writer: Writer,
        tile: Tile,
        loads: Loads,
        positions: Positions,
        shared: Mapping[int, Shared],
    ) -> None:
        self._w, self._tile, self._loads, self._positions = writer, tile, loads, positions
        self._nest, self._shared = tile.nest, shared
        self._ops = Elementwise(writer)
        self._memos: list[dict[int, Operand]] = [{}]
        self.live = tile.nest.statement_axes()
        self._uses = Counter(u for s in tile.nest.statements for u in flat_operands(s))
        for store in tile.nest.stores:
            self._uses.update([store.statement, *store.at.statements()])

    @contextmanager
    def body(self) -> Iterator[None]:
        """Values computed within are forgotten at its end."""
        self._memos.append({})
        yield
        self._memos.pop()

    def put(self, number: int, made: Value, dtype: DType) -> None:
        """Reduction `number` of the nest has been computed."""
        self._memos[-1][number] = self._ops.wrapped(made, dtype)

    def is_known_before_loops(self, number: int) -> bool:
        return number in self._memos[0]

    def of(self, number: int) -> Operand:
        """The tile of a statement, or its number."""
        for memo in reversed(self._memos):
            if number in memo:
                return memo[number]
        made = self._computed(number)
        self._memos[-1][number] = made
        return made

    def _lanes(self, number: int) -> Lanes:
        live = self.live[number]
        return lanes_of(self._tile.roles.row in live, self._tile.roles.col in live)

    def _computed(self, number: int) -> Operand:
        s = self._nest.statements[number]
        match s:
            case FlatLoad():
                return self._load(number, s)
            case IndexValue():
                return self._positions.tile(s.index, self._lanes(number), self._tile.bound)
            case Compute():
                return self._compute(s)
            case Reduce() if number in self._shared:
                return self._loads.shared(self._shared[number], s.dtype, self._lanes(number))
        raise InternalError(f"statement {number} is not available in this phase: {s}")

    def _compute(self, s: Compute) -> Operand:
        if s.op == "const":
            value = dict(s.attrs)["value"]
            assert isinstance(value, int | float | bool)
            return constant(value, s.dtype)
        fused = self._fused(s) if s.op == "add" and s.dtype is DType.F32 else None
        if fused is not None:
            return fused
        args = [self.of(a) for a in s.args]
        source = self._nest.statements[s.args[1] if s.op == "where" else s.args[0]].dtype
        with self._w.noted(s.op):
            return self._ops.compute(s.op, s.dtype, source, args)

    def _fused(self, s: Compute) -> Value | None:
        """A sum with a product that nothing else reads, in one instruction where a factor's buffer
        can take the result."""
        for number, other in (s.args, s.args[::-1]):
            factors = self._factors(number)
            for left, right in (factors, factors[::-1]) if factors else ():
                a, b, c = self.of(left), self.of(right), self.of(other)
                if isinstance(a, Const) or isinstance(b, Const) or isinstance(c, Const):
                    break
                if self._uses[left] == 1 and _takes(a, b, c) and self._is_last_of(a):
                    with self._w.noted("mul, add"):
                        return self._w.fused(a, b, c)
        return None

    def _factors(self, number: int) -> tuple[int, ...]:
        """The factors of a product that only one sum reads; none where it is none, or made."""
        m = self._nest.statements[number]
        if not isinstance(m, Compute) or m.op != "mul" or m.dtype is not DType.F32:
            return ()
        known = any(number in memo for memo in self._memos)
        return () if known or self._uses[number] != 1 else m.args

    def _is_last_of(self, a: Value) -> bool:
        """Whether a value has a buffer of its own, made in this body for one statement."""
        made = [s for s in self._w.body if isinstance(s, Step) and a in s.writes]
        owners = sum(v is a for memo in self._memos for v in memo.values())
        return a.home == "calc" and not a.pinned and len(made) == 1 and owners == 1

    def _load(self, number: int, load: FlatLoad) -> Value:
        if self._loads.same_for_all(load):
            made = self._memos[0][number] = self._loads.once(load, self._lanes(number))
            return made
        return self._loads.loaded(load, self._lanes(number))


def _takes(a: Value, b: Value, c: Value) -> bool:
    """Whether the buffer of `a` can hold a · b + c; columns are repeated for each row."""
    lanes = (a.lanes, Lanes.COL) if a.lanes is Lanes.FULL else (a.lanes,)
    return a is not b and a is not c and all(v.lanes in lanes for v in (b, c))
