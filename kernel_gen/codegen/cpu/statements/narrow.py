"""Values computed in fewer bits where that changes nothing.

64-bit lanes are twice as many registers beside fp32, and processors without AVX-512 convert them to
floats one by one. Two things are common and need none of it: positions compared with a number of
the row (one-hot targets, causal masks), and truth values that pass through integers.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.statements.ops import COMPARE
from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm, Index
from kernel_gen.ir.loopnest import Compute, IndexValue

_FLIPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_LIMIT = 1 << 30
_BITS = {DType.I64: 64, DType.I32: 32, DType.I16: 16, DType.I8: 8, DType.U8: 8}


def cast_source(nest: FlatNest, statement: Compute) -> int:
    """The statement to convert in place of a cast's operand: what that was widened from exactly.

    cast(cast(bool -> i64) -> f32)   ->   cast(bool -> f32)
    """
    (source,) = statement.args
    inner = nest.statements[source]
    while isinstance(inner, Compute) and inner.op == "cast":
        (before,) = inner.args
        if not _holds(inner.dtype, nest.statements[before].dtype):
            break
        source, inner = before, nest.statements[before]
    return source


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of the integer (or bool) type `narrow` is one of `wide`."""
    if wide not in _BITS or (narrow is not DType.BOOL and narrow not in _BITS):
        return False
    if narrow is DType.BOOL or narrow is wide:
        return True
    if wide is DType.U8:
        return False
    return _BITS[wide] > _BITS[narrow] or (narrow is not DType.U8 and _BITS[wide] == _BITS[narrow])


def compared_position(
    nest: FlatNest, statement: Compute, axis: str | None
) -> tuple[str, Index, int] | None:
    """(relation, position, other operand) of `position relation other`, where the position runs
    along `axis`, the vector's, and fits 31 bits wherever it is; None if it is no such comparison.

    The other operand may then be clamped to 32 bits.
    """
    if statement.op not in COMPARE or axis is None:
        return None
    for k, other in ((0, 1), (1, 0)):
        found = nest.statements[statement.args[k]]
        if isinstance(found, IndexValue) and found.dtype is DType.I64:
            index = found.index
            if index.coeff(axis) and _is_small(nest, index):
                relation = statement.op if k == 0 else _FLIPPED[statement.op]
                return relation, index, statement.args[other]
    return None


def _is_small(nest: FlatNest, index: Index) -> bool:
    size = abs(index.const)
    for term, coeff in index.terms:
        extent = nest.extent(term.axis) if isinstance(term, AxisTerm) else None
        if not isinstance(extent, int):
            return False
        size += abs(coeff) * extent
    return size < _LIMIT
