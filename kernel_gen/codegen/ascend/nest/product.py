"""Splitting a nest with a matrix product: what comes before, the product, what comes after.

    relu(layer_norm(x)) @ w + b      vector: a' = relu(layer_norm(x))    to the workspace
                                     cube:   c' = a' @ w                 to the workspace
                                     vector: y = c' + b

The cube may add b itself, from its bias table. A product of plain operands whose result is stored
as it is, after a bias from there or after a ReLU, needs the cube only.
"""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.codegen.ascend.instructions.steps import SPACED
from kernel_gen.codegen.ascend.nest.joined import (
    COLUMNS,
    ROWS,
    SUMMED,
    extents,
    follow,
    innermost,
    join,
    with_joined,
)
from kernel_gen.codegen.ascend.nest.product_axes import ProductAxes, contraction, product_axes
from kernel_gen.codegen.ascend.nest.product_bias import Bias, bias_of
from kernel_gen.codegen.ascend.nest.shape import Shaped
from kernel_gen.codegen.ascend.nest.split_nest import SplitNest, lies_along_rows, turned
from kernel_gen.codegen.flat.linear import (
    FlatLoad,
    FlatNest,
    FlatStore,
    Linear,
    product,
)
from kernel_gen.codegen.flat.phases import closure
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.loopnest import Axis, Buffer, BufferRole, Compute, Contract
from kernel_gen.ir.types import TensorType

_NARROW = (DType.F16, DType.BF16)


def split(shape: Shaped, *, table: bool = False) -> SplitNest | Refusal:
    """The three parts of a nest with one product. `table`: what the bias table can add is the
    product's, not the epilogue's."""
    return _Splitter(shape, table).run()


class _Splitter:
    def __init__(self, shape: Shaped, table: bool) -> None:
        self._shape = shape
        self._table = table
        self._nest = shape.nest
        self._buffers = list(shape.nest.buffers)
        self._before: list[FlatStore] = []

    def run(self) -> SplitNest | Refusal:
        nest = self._nest
        at = contraction(nest)
        if isinstance(at, Refusal):
            return at
        if DType.F64 in [b.type.dtype for b in nest.buffers]:
            return Refusal("dtype-not-on-device", "the cube unit has no 64-bit floats")
        c = nest.statements[at]
        assert isinstance(c, Contract)
        if not c.dtype.is_float:
            return Refusal("narrow-sum", "integer products are not generated for the cube unit")
        if len(c.axes) > 1 or self._has_gaps(c) or self._runs_across(c):
            return self._joined(at, c)
        axes = product_axes(nest, at)
        if isinstance(axes, Refusal):
            return axes
        kind = self._operand_type(c)
        left, lhs = self._operand(c.lhs, kind)
        right, rhs = self._operand(c.rhs, kind)
        bias = self._bias(at, axes)
        epilogue, out, result, relu = self._result(at if bias is None else bias.total)
        made = SplitNest(
            self._shape, axes, tuple(self._buffers), self._prologue(), epilogue, left, right, out,
            lhs, rhs, result, relu, bias,
        )  # fmt: skip
        return self._facing(made)

    def _facing(self, made: SplitNest) -> SplitNest | Refusal:
        """With rows and columns as the result has them in memory: exchanged, a bias is no number
        for each column."""
        if not lies_along_rows(made.axes, made.result):
            return made
        return turned(made) if made.bias is None else split(self._shape)

    def _bias(self, at: int, axes: ProductAxes) -> Bias | None:
        return bias_of(self._nest, at, axes) if self._table else None

    def _joined(self, at: int, c: Contract) -> SplitNest | Refusal:
        """A product that sums over several axes."""
        nest, live = self._nest, self._nest.statement_axes()
        order = [a.name for a in nest.axes]
        both = live[c.lhs] & live[c.rhs]
        summed = [a for a in order if a in c.axes]
        sides = [[a for a in order if a in live[x] - both] for x in (c.lhs, c.rhs)]
        points = extents(nest, summed)
        if points is None or not set(summed) <= both or not all(sides):
            return Refusal("operand-layout", f"the product sums over {c.axes}")
        kind = self._operand_type(c)
        batch = [a for a in order if a in both and a not in summed]
        outer = (*batch, *sides[0][:-1], *sides[1][:-1])
        bias = self._bias(at, ProductAxes(outer, sides[0][-1], sides[1][-1], summed[-1]))
        epilogue, out, result, relu = self._result(at if bias is None else bias.total)
        operands, inner = [], []
        for number, own in zip((c.lhs, c.rhs), sides, strict=True):
            if self._is_scattered(number, own[-1]):
                return Refusal("operand-layout", "a strided window is read element by element")
            buffer, where, last = self._gathered(number, batch, own, summed, result, kind)
            operands.append((buffer, join(where, summed, SUMMED)))
            inner.append(last)
        if bias is not None:
            if not follow(nest, bias.at, inner[1]):
                return split(self._shape)
            bias = replace(bias, at=join(bias.at, inner[1], COLUMNS))
        for axes, name in zip(inner, (ROWS, COLUMNS), strict=True):
            operands = [(b, join(x, axes, name)) for b, x in operands]
            result = join(result, axes, name)
        counts = [extents(nest, axes) or 1 for axes in inner]
        known = with_joined(nest, ((ROWS, counts[0]), (COLUMNS, counts[1]), (SUMMED, points)))
        apart = {*batch, *sides[0], *sides[1]} - {*inner[0], *inner[1]}
        roles = ProductAxes(tuple(a for a in order if a in apart), ROWS, COLUMNS, SUMMED)
        (left, lhs), (right, rhs) = operands
        made = SplitNest(
            replace(self._shape, nest=known), roles, tuple(self._buffers), self._prologue(),
            epilogue, left, right, out, lhs, rhs, result, relu, bias,
        )  # fmt: skip
        return self._facing(made)

    def _has_gaps(self, c: Contract) -> bool:
        """Whether an operand is read with gaps along all of its axes, as by a strided window."""
        live = self._nest.statement_axes()
        for number, other in ((c.lhs, c.rhs), (c.rhs, c.lhs)):
            s = self._nest.statements[number]
            own = self._in_order(live[number] - live[other])
            summed = extents(self._nest, c.axes)
            if isinstance(s, FlatLoad) and self._plain(number) and own and summed is not None:
                steps = [s.at.coeff(axis).const for axis in (*own, *c.axes)]
                if None not in steps and 1 not in steps:
                    return True
        return False

    def _runs_across(self, c: Contract) -> bool:
        """Whether an operand is computed from what lies along its own axes in memory, and nothing
        of it along the summed one: it is written that way, too."""
        live = self._nest.statement_axes()
        sides = [self._in_order(live[x] - live[y]) for x, y in ((c.lhs, c.rhs), (c.rhs, c.lhs))]
        if not all(sides) or extents(self._nest, c.axes) is None:
            return False
        return any(
            self._plain(number) is None and self._reads_across(number, own[-1], c.axes[-1])
            for number, own in zip((c.lhs, c.rhs), sides, strict=True)
        )

    def _reads_across(self, number: int, last: str, summed: str) -> bool:
        nest = self._nest
        made = (nest.statements[i] for i in closure(nest, [number], frozenset()))
        tiles = [s for s in made if isinstance(s, FlatLoad) and {last, summed} <= s.at.axes()]
        across = any(s.at.coeff(last).const in (1, *SPACED) for s in tiles)
        along = any(s.at.coeff(summed).const == 1 for s in tiles)
        narrow = nest.statements[number].dtype in _NARROW or all(
            nest.buffers[s.buffer].type.dtype in _NARROW for s in tiles
        )
        # fp32 is transposed on its way into the cube unit as the right operand only
        right = any(store.at.coeff(last).const == 1 for store in nest.stores)
        return across and not along and (narrow or right)

    def _is_scattered(self, number: int, last: str) -> bool:
        """Whether neighbours along an operand's last axis lie too far apart in memory to be read
        with what is between them, and it is no matrix that is read the other way."""
        s = self._nest.statements[number]
        if not isinstance(s, FlatLoad):
            return False
        steps = [s.at.coeff(axis).const for axis in s.at.axes()]
        near = s.at.coeff(last).const in (1, *SPACED)
        return not near and (bool(s.guards) or 1 not in steps)

    def _gathered(
        self, number: int, batch: list[str], own: list[str], summed: list[str], result: Linear,
        kind: DType,
    ) -> tuple[int, Linear, tuple[str, ...]]:  # fmt: skip
        """An operand's buffer, where its elements lie, and which of its own axes become one: as it
        lies, or written so that the summed axes follow each other."""
        s = self._nest.statements[number]
        inner = innermost(self._nest, result, own)
        if isinstance(s, FlatLoad) and self._plain(number) is kind:
            ends = (s.at.coeff(summed[-1]).const, s.at.coeff(own[-1]).const)
            if follow(self._nest, s.at, summed) and 1 in ends:
                return s.buffer, s.at, innermost(self._nest, s.at, inner)
        outer = [a for a in own if a not in inner]
        at, buffer = self._tensor([*batch, *outer, *summed, *inner], kind)
        self._before.append(FlatStore(buffer, at, number))
        return buffer, at, inner

    def _result(self, at: int) -> tuple[FlatNest | None, int, Linear, bool]:
        """What follows the product, the buffer of its result and where that lies, and whether it
        passes a ReLU on its way."""
        direct = self._direct(at)
        if direct is not None:
            store, relu = direct
            return None, store.buffer, store.at, relu
        return *self._epilogue(at), False

    def _prologue(self) -> FlatNest | None:
        if not self._before:
            return None
        return _pruned(self._nest, self._buffers, self._nest.statements, tuple(self._before))

    def _operand_type(self, c: Contract) -> DType:
        """The type that both operands have in memory."""
        plain = [t for t in (self._plain(c.lhs), self._plain(c.rhs)) if t is not None]
        narrow = [t for t in plain if t in _NARROW]
        if plain:
            return narrow[0] if narrow and len(set(plain)) == 1 else plain[0]
        types = [b.type.dtype for b in self._nest.buffers if b.role is BufferRole.OUTPUT]
        return types[0] if types[0] in _NARROW else DType.F32

    def _plain(self, number: int) -> DType | None:
        """The storage type of an operand that is read as it lies in memory."""
        s = self._nest.statements[number]
        if isinstance(s, FlatLoad) and not s.guards and not s.at.statements():
            affine = all(isinstance(t, AxisTerm) for t, _ in s.at.terms)
            dtype = self._nest.buffers[s.buffer].type.dtype
            if affine and dtype in (*_NARROW, DType.F32):
                return dtype
        return None

    def _operand(self, number: int, kind: DType) -> tuple[int, Linear]:
        s = self._nest.statements[number]
        if isinstance(s, FlatLoad) and self._plain(number) is kind:
            return s.buffer, s.at
        live = self._nest.statement_axes()[number]
        at, buffer = self._tensor(self._in_order(live), kind)
        self._before.append(FlatStore(buffer, at, number))
        return buffer, at

    def _in_order(self, live: frozenset[str]) -> list[str]:
        return [a.name for a in self._nest.axes if a.name in live]

    def _tensor(self, names: list[str], kind: DType) -> tuple[Linear, int]:
        """A dense tensor over some axes, outermost first, as a further buffer."""
        axes = [Axis(name, self._nest.extent(name)) for name in names]
        terms = [
            (AxisTerm(a.name), product(x.extent for x in axes[i + 1 :])) for i, a in enumerate(axes)
        ]
        self._buffers.append(
            Buffer(TensorType(kind, tuple(a.extent for a in axes)), BufferRole.OUTPUT)
        )
        return Linear(tuple(terms)), len(self._buffers) - 1

    def _direct(self, at: int) -> tuple[FlatStore, bool] | None:
        """The store of the bare result, and whether a ReLU comes first; None if more is done."""
        nest = self._nest
        if len(nest.stores) != 1:
            return None
        store = nest.stores[0]
        stored = nest.buffers[store.buffer].type.dtype
        number, relu = store.statement, False
        while number != at:
            s = nest.statements[number]
            if not isinstance(s, Compute):
                return None
            if s.op == "relu" and not relu:
                relu = True
            elif not (s.op == "cast" and s.dtype in (stored, DType.F32)):
                return None
            number = s.args[0]
        affine = all(isinstance(t, AxisTerm) for t, _ in store.at.terms) and not store.guards
        return (store, relu) if affine and stored in (*_NARROW, DType.F32) else None

    def _epilogue(self, at: int) -> tuple[FlatNest, int, Linear]:
        nest = self._nest
        result, out = self._tensor(self._in_order(nest.statement_axes()[at]), DType.F32)
        load = FlatLoad(out, result, nest.statements[at].dtype)
        statements = (*nest.statements[:at], load, *nest.statements[at + 1 :])
        return _pruned(nest, self._buffers, statements, nest.stores), out, result


def _pruned(
    nest: FlatNest,
    buffers: list[Buffer],
    statements: tuple[object, ...],
    stores: tuple[FlatStore, ...],
) -> FlatNest:
    """A nest with what `stores` need only; statements keep their numbers, others are constants."""
    whole = replace(nest, buffers=tuple(buffers), statements=statements, stores=stores)  # type: ignore[arg-type]
    roots = [s.statement for s in stores]
    for store in stores:
        roots += sorted(store.at.statements())
    kept = closure(whole, roots, frozenset())
    nothing = Compute("const", (), DType.F32, (("value", 0.0),))
    live = whole.statement_axes()
    used = {a for n in kept for a in live[n]} | {a for s in stores for a in s.at.axes()}
    for n in kept:
        used |= set(getattr(whole.statements[n], "axes", ()))
    axes: tuple[Axis, ...] = tuple(a for a in nest.axes if a.name in used)
    return replace(
        whole,
        axes=axes or nest.axes[-1:],
        statements=tuple(s if i in kept else nothing for i, s in enumerate(whole.statements)),
    )
