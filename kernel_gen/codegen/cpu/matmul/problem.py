"""What a nest with a matrix product looks like to the matmul template.

Axes fall into four groups by where they occur: `batch` (both operands), `rows` (lhs only), `cols`
(rhs only) and `depth` (summed over). Their products are B, M, N and K. An operand that lacks a
batch axis turns that axis into rows or columns, which is how broadcast batches become one product.

Several products of one left operand (query, key and value; gate and up) are *sections*: they share
axes, tiles and the packed A, and one epilogue sees the sums of all of them.

An epilogue that reduces along the columns (a norm or a softmax of the product) needs whole rows:
their sums wait until all columns are done (`row_epilogue`).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.axes import elems, extent
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import (
    Axis,
    Contract,
    Load,
    LoopNest,
    Reduce,
    closure,
    operands,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A nest split around its products. Statement lists are ascending positions in the nest.

    `left` and `right` (one list per section) feed the products' operands, the operand itself being
    the last one; `after` are the statements that stores need besides the products themselves.
    """

    nest: LoopNest
    contracts: tuple[int, ...]
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    cols: tuple[Axis, ...]
    depth: tuple[Axis, ...]
    left: tuple[int, ...]
    right: tuple[tuple[int, ...], ...]
    after: tuple[int, ...]

    @property
    def product(self) -> Contract:
        """The first section's product; all share its left operand, axes and type."""
        return self.section(0)

    @property
    def sections(self) -> int:
        return len(self.contracts)

    def section(self, number: int) -> Contract:
        statement = self.nest.statements[self.contracts[number]]
        assert isinstance(statement, Contract)
        return statement

    @property
    def b(self) -> int:
        """Extent of the batch."""
        return elems(self.batch)

    @property
    def m(self) -> int:
        """Rows of one product."""
        return elems(self.rows)

    @property
    def n(self) -> int:
        """Columns of one product."""
        return elems(self.cols)

    @property
    def k(self) -> int:
        """Length of the sums."""
        return elems(self.depth)

    @property
    def finishes_rows(self) -> bool:
        """Whether the epilogue reduces along the columns, so that it needs whole rows of sums."""
        return any(isinstance(self.nest.statements[p], Reduce) for p in self.after)

    @property
    def right_has_batch(self) -> bool:
        """Whether the right operand differs from product to product."""
        lives = set(self.nest.statement_axes()[self.product.rhs])
        return any(axis.name in lives for axis in self.batch)

    @property
    def inner_cols(self) -> int:
        """Extent of the innermost column axis: vectors stay inside it."""
        return extent(self.cols[-1]) if self.cols else 1

    @property
    def joins_cols(self) -> bool:
        """Whether tiles may go on from one end of the innermost column axis to its next begin."""
        return len(self.cols) > 1 and not self.finishes_rows


def analyse(nest: LoopNest) -> Problem | Refusal:
    """Split `nest` around its products, or say why it is not this template's."""
    found = [i for i, s in enumerate(nest.statements) if isinstance(s, Contract)]
    problem = _split(nest, tuple(found))
    return _objection(problem) or problem


def _split(nest: LoopNest, contracts: tuple[int, ...]) -> Problem:
    products = [s for s in nest.statements if isinstance(s, Contract)]
    batch, rows, cols, depth = axis_groups(nest)
    stored = ancestors(nest, tuple(store.statement for store in nest.stores), stop=contracts)

    def pick(names: tuple[str, ...]) -> tuple[Axis, ...]:
        return tuple(nest.axis(name) for name in names)

    return Problem(
        nest=nest,
        contracts=contracts,
        batch=pick(batch),
        rows=pick(rows),
        cols=pick(cols),
        depth=pick(depth),
        left=ancestors(nest, (products[0].lhs,)),
        right=tuple(ancestors(nest, (product.rhs,)) for product in products),
        after=tuple(s for s in stored if s not in contracts),
    )


def axis_groups(nest: LoopNest) -> tuple[tuple[str, ...], ...]:
    """Names of the batch, row, column and depth axes, each in the nest's order."""
    product = next(s for s in nest.statements if isinstance(s, Contract))
    lives = nest.statement_axes()
    depth = set(product.axes)
    left, right = set(lives[product.lhs]) - depth, set(lives[product.rhs]) - depth
    rows, cols = left - right, right - left
    order = [axis.name for axis in nest.axes]
    batch = set(order) - rows - cols - depth
    return tuple(tuple(n for n in order if n in group) for group in (batch, rows, cols, depth))


def ancestors(
    nest: LoopNest, roots: tuple[int, ...], stop: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Positions of `roots` and all they read, ascending; does not look behind `stop`."""
    return tuple(sorted(closure(roots, lambda p: operands(nest.statements[p]), stop)))


REDUCTIONS = ("sum", "prod", "amax", "amin")
"""Row statistics that a prologue may hold."""


def _objection(problem: Problem) -> Refusal | None:
    return (
        _mixed_sections(problem)
        or _bad_type(problem)
        or _bad_reduction(problem)
        or _bad_epilogue(problem)
    )


def _mixed_sections(problem: Problem) -> Refusal | None:
    lives = problem.nest.statement_axes()
    first = problem.product
    for number, position in enumerate(problem.contracts):
        other = problem.section(number)
        same = (other.lhs, other.axes, other.dtype) == (first.lhs, first.axes, first.dtype)
        if not same or lives[other.rhs] != lives[first.rhs]:
            return Refusal(
                "products-differ", f"product {position} shares not all with {problem.contracts[0]}"
            )
        if set(problem.right[number]) & set(problem.contracts):
            return Refusal("products-chained", f"product {position} reads another product")
    if set(problem.left) & set(problem.contracts):
        return Refusal("products-chained", "the left operand reads a product")
    return None


def _bad_type(problem: Problem) -> Refusal | None:
    dtype = problem.product.dtype
    if dtype.bytes < 4:
        return Refusal("narrow-sum", f"sums in {dtype} are not supported")
    return None


def _bad_reduction(problem: Problem) -> Refusal | None:
    depth, cols = ({axis.name for axis in axes} for axes in (problem.depth, problem.cols))
    for position in (p for part in problem.right for p in part):
        if isinstance(problem.nest.statements[position], Reduce):
            return Refusal(
                "reduction-beside-product", f"statement {position} reduces in the right operand"
            )
    for position in problem.after:
        statement = problem.nest.statements[position]
        if isinstance(statement, Reduce) and not set(statement.axes) <= cols:
            return Refusal(
                "reduction-beside-product",
                f"statement {position}: {statement.op} over {statement.axes} after a product whose "
                f"columns are {tuple(sorted(cols))}",
            )
    for position in problem.left:
        statement = problem.nest.statements[position]
        if isinstance(statement, Reduce) and (
            set(statement.axes) != depth or statement.op not in REDUCTIONS
        ):
            return Refusal(
                "reduction-axes",
                f"statement {position}: {statement.op} over {statement.axes} beside a product over "
                f"{problem.product.axes}",
            )
    return None


def _bad_epilogue(problem: Problem) -> Refusal | None:
    lives, depth = problem.nest.statement_axes(), {axis.name for axis in problem.depth}
    for position in problem.after:
        if set(lives[position]) & depth:
            return Refusal("depth-after-product", f"statement {position} keeps a summed axis")
    stored = [{a for i in s.index for a in i.axes()} for s in problem.nest.stores]
    if any(axes & depth for axes in stored):
        return Refusal("depth-after-product", "a store runs over a summed axis")
    multiplied = {a for s in problem.contracts for a in lives[s]}
    for axis in problem.batch:
        if axis.name not in multiplied and not all(axis.name in axes for axes in stored):
            # the product would be computed again for each point of an axis it does not have
            return Refusal("mixed-domains", f"axis {axis.name} belongs to some stores only")
    return None


def plain_load(nest: LoopNest, position: int) -> Load | None:
    """The statement if it is a load from a flat buffer without guards or indirection, else None."""
    statement = nest.statements[position]
    if not isinstance(statement, Load) or statement.guards or len(statement.index) != 1:
        return None
    if any(index.statements() for index in statement.index):
        return None
    return statement
