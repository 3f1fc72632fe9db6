"""Operands of products in the narrow type of the tensors, as NPUs multiply them.

    c = (x · s) @ w, all of fp16          cast f16 (x · s), then the product

A kernel for each op rounds there, too, and eager: what overflows the type is infinite for all.
"""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.loopnest import BufferRole, Compute, Contract, Load, LoopNest, Statement
from kernel_gen.ir.renumber import renumbered, renumbered_store

_NARROW = (DType.F16, DType.BF16)


def with_narrow_operands(nest: LoopNest) -> LoopNest:
    """The nest with a rounding in front of each product for operands that are computed."""
    made: list[Statement] = []
    place: dict[int, int] = {}
    for number, statement in enumerate(nest.statements):
        if isinstance(statement, Contract):
            lhs, rhs = (
                _rounded(nest, statement, operand, place[operand], made)
                for operand in (statement.lhs, statement.rhs)
            )
            made.append(replace(statement, lhs=lhs, rhs=rhs))
        else:
            made.append(renumbered(statement, place))
        place[number] = len(made) - 1
    stores = tuple(renumbered_store(store, place) for store in nest.stores)
    return replace(nest, statements=tuple(made), stores=stores)


def _rounded(
    nest: LoopNest, product: Contract, operand: int, at: int, made: list[Statement]
) -> int:
    """Where the operand stands that is multiplied: itself, or rounded."""
    dtype = nest.statements[operand].dtype
    narrow = _multiplied_in(nest, product)
    if isinstance(nest.statements[operand], Load) or narrow is None or dtype is not DType.F32:
        return at
    for to in (narrow, dtype):
        made.append(Compute("cast", (at,), to, attrs(dtype=to)))
        at = len(made) - 1
    return at


def _multiplied_in(nest: LoopNest, product: Contract) -> DType | None:
    """The narrow type of a tensor that the product reads as it is, else the result's."""
    for operand in (product.lhs, product.rhs):
        source = nest.statements[operand]
        if isinstance(source, Load):
            dtype = nest.buffers[source.buffer].type.dtype
            return dtype if dtype in _NARROW else None
    results = [b.type.dtype for b in nest.buffers if b.role is BufferRole.OUTPUT]
    return results[0] if results[0] in _NARROW else None
