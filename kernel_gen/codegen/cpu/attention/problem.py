"""What a nest looks like to the attention template: two products around a softmax.

Axes by where they occur: `batch` (keys or values), `rows` (queries and scores only: positions, and
the heads that share keys), `keys` (one axis, summed by the second product), `depth` (summed by the
first) and `cols` (values only). Their extents are B, M, T, D and E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.codegen.cpu.attention.visible import Limit, constant, limits
from kernel_gen.codegen.cpu.axes import elems
from kernel_gen.codegen.flat.linear import FlatNest, flatten
from kernel_gen.codegen.flat.phases import closure, reductions, store_axes
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Axis, Compute, Contract, LoopNest, Reduce

_FLOATS = (DType.F32, DType.F64)


@dataclass(frozen=True, slots=True)
class Problem:
    """A nest split around its softmax; numbers are positions of statements in `nest`.

    `query`, `key` and `value` are operands of the products `first` and `second`, `scores` what the
    softmax reads. `safe`: rows whose scores are all -inf weigh nothing; else they give NaN.
    `limits` bound the keys that a row may see.
    """

    nest: FlatNest
    first: int
    second: int
    query: int
    key: int
    value: int
    scores: int
    safe: bool
    limits: tuple[Limit, ...]
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    keys: Axis
    depth: tuple[Axis, ...]
    cols: Axis

    @property
    def dtype(self) -> DType:
        """The type in which products and softmax are computed."""
        return self.nest.statements[self.first].dtype

    @property
    def b(self) -> int:
        return elems(self.batch)

    @property
    def m(self) -> int:
        return elems(self.rows)

    @property
    def t(self) -> int:
        return elems((self.keys,))

    @property
    def d(self) -> int:
        return elems(self.depth)

    @property
    def e(self) -> int:
        return elems((self.cols,))


@dataclass(frozen=True, slots=True)
class _Softmax:
    """Statements of softmax(scores): the largest score, the sum, the weights."""

    scores: int
    top: int
    total: int
    safe: bool


def analyse(nest: LoopNest) -> Problem | Refusal:
    """The problem, or why the nest is none."""
    found = [s for s in nest.statements if isinstance(s, Contract)]
    if len(found) != 2:
        return Refusal("not-attention", f"{len(found)} matrix products; attention has two")
    if any(not isinstance(axis.extent, int) for axis in nest.axes):
        return Refusal("symbolic-extent", "the attention template needs static extents")
    if any(axis.extent == 0 for axis in nest.axes):
        return Refusal("empty-sum", "an axis has no elements")
    flat = simplify(flatten(nest))
    first, second = (i for i, s in enumerate(flat.statements) if isinstance(s, Contract))
    softmax, value = _softmax(flat, second)
    if softmax is None:
        return Refusal("not-attention", "between the products stands no softmax over the keys")
    return _problem(flat, first, second, softmax, value)


def _softmax(nest: FlatNest, second: int) -> tuple[_Softmax | None, int]:
    """The softmax that the second product weighs its other operand with, and that operand."""
    product = nest.statements[second]
    assert isinstance(product, Contract)
    for weights, value in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        found = _softmax_at(nest, weights, product.axes)
        if found is not None:
            return found, value
    return None, product.rhs


def _softmax_at(nest: FlatNest, weights: int, keys: tuple[str, ...]) -> _Softmax | None:
    """exp(s - max s) / Σ exp(s - max s) over `keys`, where `max s == -inf` perhaps 0 instead."""
    body = _operands(nest, weights, "where")
    quotient = _operands(nest, weights if body is None else body[2], "div")
    power = None if quotient is None else _operands(nest, quotient[0], "exp")
    shifted = None if power is None else _operands(nest, power[0], "sub")
    if quotient is None or shifted is None:
        return None
    top, total = (nest.statements[i] for i in (shifted[1], quotient[1]))
    if not (isinstance(top, Reduce) and (top.op, top.axes, top.arg) == ("amax", keys, shifted[0])):
        return None
    if not (isinstance(total, Reduce) and (total.op, total.axes) == ("sum", keys)):
        return None
    if total.arg != quotient[0] or (body is not None and not _empties(nest, body, shifted[1])):
        return None
    return _Softmax(shifted[0], shifted[1], quotient[1], safe=body is not None)


def _empties(nest: FlatNest, body: tuple[int, ...], top: int) -> bool:
    """Whether a `where` has the condition `top == -inf` and gives 0 then."""
    compared = _operands(nest, body[0], "eq")
    return (
        compared is not None
        and compared[0] == top
        and constant(nest, compared[1]) == -math.inf
        and constant(nest, body[1]) == 0.0
    )


def _operands(nest: FlatNest, position: int, op: str) -> tuple[int, ...] | None:
    statement = nest.statements[position]
    return statement.args if isinstance(statement, Compute) and statement.op == op else None


def _problem(
    nest: FlatNest, first: int, second: int, softmax: _Softmax, value: int
) -> Problem | Refusal:
    live = nest.statement_axes()
    product, weighted = nest.statements[first], nest.statements[second]
    assert isinstance(product, Contract)
    assert isinstance(weighted, Contract)
    keys = frozenset(weighted.axes)
    sides = [s for s in (product.lhs, product.rhs) if keys & live[s]]
    if len(keys) != 1 or len(sides) != 1:
        return Refusal("not-attention", "the keys are not one axis of one operand")
    (key,) = sides
    query = product.rhs if key == product.lhs else product.lhs
    depth = frozenset(product.axes)
    cols = live[value] - live[softmax.scores]
    batch = (live[key] | live[value]) - keys - depth - cols
    rows = (live[softmax.scores] | live[query]) - batch - keys - depth
    refused = _mixed_stages(nest, (first, second), (query, key, value), softmax)
    refused = refused or _odd_axes(nest, (batch, rows, keys, depth, cols), batch | rows | cols)
    if refused is not None:
        return refused

    def ordered(names: frozenset[str]) -> tuple[Axis, ...]:
        return tuple(axis for axis in nest.axes if axis.name in names)

    return Problem(
        nest,
        first,
        second,
        query,
        key,
        value,
        softmax.scores,
        softmax.safe,
        limits(nest, softmax.scores, weighted.axes[0]),
        ordered(batch),
        ordered(rows),
        ordered(keys)[0],
        ordered(depth),
        ordered(cols)[0],
    )


def _odd_axes(
    nest: FlatNest, groups: tuple[frozenset[str], ...], written: frozenset[str]
) -> Refusal | None:
    """Every axis plays one part, values have one axis of their own, stores write all results."""
    names = [name for group in groups for name in group]
    if sorted(names) != sorted(axis.name for axis in nest.axes) or len(groups[-1]) != 1:
        return Refusal("attention-axes", "the axes of queries, keys and values do not part")
    if any(store_axes(nest, k) != written for k in range(len(nest.stores))):
        return Refusal("attention-output", "an output is not an element for each result")
    return None


def _mixed_stages(
    nest: FlatNest,
    products: tuple[int, int],
    operands: tuple[int, int, int],
    softmax: _Softmax,
) -> Refusal | None:
    """Each stage may read what the stage before made and loads; reductions are the softmax's."""
    found = frozenset(reductions(nest))
    if found != {*products, softmax.top, softmax.total}:
        return Refusal("attention-reduction", "there are reductions besides those of the softmax")
    stages = [(root, frozenset[int]()) for root in operands]
    stages.append((softmax.scores, frozenset(products[:1])))
    stages += [(store.statement, frozenset(products[1:])) for store in nest.stores]
    for root, stop in stages:
        if closure(nest, [root], stop) & found - stop:
            return Refusal("attention-reads", "a stage reads the results of another one")
    types = {nest.statements[i].dtype for i in (*found, softmax.scores, *operands)}
    if len(types) != 1 or types.isdisjoint(_FLOATS):
        return Refusal("attention-types", "products and softmax are computed in several types")
    return None
