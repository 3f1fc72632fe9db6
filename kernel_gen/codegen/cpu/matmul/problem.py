"""What a nest with one matrix product looks like to the matmul template.

Axes fall into four groups by where they occur: `batch` (both operands), `rows` (lhs only), `cols`
(rhs only) and `depth` (summed over). Their products are B, M, N and K. An operand that lacks a
batch axis turns that axis into rows or columns, which is how broadcast batches become one product.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import (
    Axis,
    Compute,
    Contract,
    IndexValue,
    Load,
    LoopNest,
    Reduce,
    operands,
)
from kernel_gen.ir.types import Sym


@dataclass(frozen=True, slots=True)
class Problem:
    """A nest split around its product. Statement lists are ascending positions in the nest.

    `left` and `right` feed the product's operands (the operand itself is the last one), `after` are
    the statements that stores need besides the product itself.
    """

    nest: LoopNest
    contract: int
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    cols: tuple[Axis, ...]
    depth: tuple[Axis, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def product(self) -> Contract:
        statement = self.nest.statements[self.contract]
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
    def right_has_batch(self) -> bool:
        """Whether the right operand differs from product to product."""
        lives = set(self.nest.statement_axes()[self.product.rhs])
        return any(axis.name in lives for axis in self.batch)

    @property
    def inner_cols(self) -> int:
        """Extent of the innermost column axis: vectors and tiles stay inside it."""
        return extent(self.cols[-1]) if self.cols else 1

    @property
    def outer_cols(self) -> int:
        """Number of column slabs."""
        return self.n // self.inner_cols if self.n else 0


def extent(axis: Axis) -> int:
    """The static extent of an axis; the template refuses symbolic ones."""
    assert isinstance(axis.extent, int)
    return axis.extent


def elems(axes: tuple[Axis, ...]) -> int:
    """Number of points of several axes."""
    total = 1
    for axis in axes:
        total *= extent(axis)
    return total


def analyse(nest: LoopNest) -> Problem | Refusal:
    """Split `nest` around its product, or say why it is not this template's."""
    products = [i for i, s in enumerate(nest.statements) if isinstance(s, Contract)]
    if len(products) != 1:
        return Refusal("not-one-product", f"the nest holds {len(products)} matrix products, not 1")
    if any(isinstance(axis.extent, Sym) for axis in nest.axes):
        return Refusal("symbolic-extent", "the matmul template needs static extents")
    problem = _split(nest, products[0])
    return _objection(problem) or problem


def _split(nest: LoopNest, contract: int) -> Problem:
    product = nest.statements[contract]
    assert isinstance(product, Contract)
    lives = nest.statement_axes()
    depth = set(product.axes)
    left, right = set(lives[product.lhs]) - depth, set(lives[product.rhs]) - depth
    rows, cols = left - right, right - left
    batch = {axis.name for axis in nest.axes} - depth - rows - cols
    stored = ancestors(nest, tuple(store.statement for store in nest.stores), stop=contract)

    def pick(names: set[str]) -> tuple[Axis, ...]:
        return tuple(axis for axis in nest.axes if axis.name in names)

    return Problem(
        nest=nest,
        contract=contract,
        batch=pick(batch),
        rows=pick(rows),
        cols=pick(cols),
        depth=pick(depth),
        left=ancestors(nest, (product.lhs,)),
        right=ancestors(nest, (product.rhs,)),
        after=tuple(s for s in stored if s != contract),
    )


def ancestors(nest: LoopNest, roots: tuple[int, ...], stop: int = -1) -> tuple[int, ...]:
    """Positions of `roots` and all they read, ascending; does not look behind `stop`."""
    found: set[int] = set()
    open_ = list(roots)
    while open_:
        position = open_.pop()
        if position in found:
            continue
        found.add(position)
        if position != stop:
            open_.extend(operands(nest.statements[position]))
    return tuple(sorted(found))


def _objection(problem: Problem) -> Refusal | None:
    nest, depth = problem.nest, {axis.name for axis in problem.depth}
    if problem.product.dtype.bytes < 4:
        return Refusal("narrow-sum", f"sums in {problem.product.dtype} are not supported")
    for position in problem.after + problem.right:
        if isinstance(nest.statements[position], Reduce):
            return Refusal(
                "reduction-beside-product", f"statement {position} reduces outside the left operand"
            )
    for position in problem.left:
        statement = nest.statements[position]
        if isinstance(statement, Reduce) and set(statement.axes) != depth:
            return Refusal(
                "reduction-axes",
                f"statement {position} reduces over {statement.axes}, the product over "
                f"{problem.product.axes}",
            )
    lives = nest.statement_axes()
    for position in problem.after:
        if set(lives[position]) & depth:
            return Refusal("depth-after-product", f"statement {position} keeps a summed axis")
    if not all(
        isinstance(nest.statements[s], Load | Compute | IndexValue | Reduce)
        for s in problem.left + problem.right + problem.after
    ):
        return Refusal("not-one-product", "products feed each other")
    return None


def plain_load(nest: LoopNest, position: int) -> Load | None:
    """The statement if it is a load without guards or indirection, else None."""
    statement = nest.statements[position]
    if not isinstance(statement, Load) or statement.guards:
        return None
    if any(index.statements() for index in statement.index):
        return None
    return statement
