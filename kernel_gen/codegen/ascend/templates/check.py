"""What the vector unit cannot do, found before anything is generated."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.codegen.ascend.instructions.elementwise import refuse_op
from kernel_gen.codegen.ascend.instructions.writer import Const, Operand
from kernel_gen.codegen.ascend.moves.addresses import scalar_op
from kernel_gen.codegen.ascend.nest.ranges import Range, ranges_of
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, flat_operands
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Compute, IndexValue, Reduce
from kernel_gen.ir.types import Sym


def refuse_nest(nest: FlatNest) -> Refusal | None:
    """The first reason why a nest cannot run on the vector cores, or None."""
    types = [b.type.dtype for b in nest.buffers] + [s.dtype for s in nest.statements]
    if DType.F64 in types:
        return Refusal("dtype-not-on-device", "the vector unit has no 64-bit floats")
    for store in nest.stores:
        if store.guards or store.at.statements():
            return Refusal(
                "scattered-store", f"buffer {store.buffer} is written at computed places"
            )
    indices = {s for a in nest.accesses() for s in a.at.statements()}
    for number in indices:
        if not _scalar(nest, number):
            return Refusal(
                "index-not-scalar", f"statement {number} is an index that is not read directly"
            )
    ranges = ranges_of(nest)
    for number in sorted(_valued(nest)):
        refusal = _refuse_statement(nest, number, ranges)
        if refusal is not None:
            return refusal
    return None


def _valued(nest: FlatNest) -> set[int]:
    """Statements whose values the vector unit computes: not those that are positions only."""
    found: set[int] = set()
    todo = [store.statement for store in nest.stores]
    while todo:
        number = todo.pop()
        statement = nest.statements[number]
        if number not in found:
            found.add(number)
            if not isinstance(statement, FlatLoad | IndexValue):
                todo += flat_operands(statement)
    return found


def _refuse_statement(nest: FlatNest, number: int, ranges: Sequence[Range]) -> Refusal | None:
    statement = nest.statements[number]
    match statement:
        case Compute():
            return _refuse_compute(nest, number, statement, ranges)
        case Reduce():
            return _refuse_reduce(nest, number, statement, ranges)
        case IndexValue() if not ranges[number].fits(DType.I32):
            return Refusal("op-not-on-device", "the vector unit has no positions beyond 32 bits")
    return None


def _scalar(nest: FlatNest, number: int) -> bool:
    """Whether the scalar unit can compute a statement from global memory."""
    s = nest.statements[number]
    if isinstance(s, FlatLoad):
        return all(_scalar(nest, n) for n in s.at.statements())
    if isinstance(s, Compute):
        return s.op == "const" or (scalar_op(s.op) and all(_scalar(nest, a) for a in s.args))
    return isinstance(s, IndexValue)


def _refuse_compute(
    nest: FlatNest, number: int, s: Compute, ranges: Sequence[Range]
) -> Refusal | None:
    if s.op == "const":
        return None
    operand = nest.statements[s.args[1] if s.op == "where" else s.args[0]].dtype
    args: list[Operand | None] = []
    for a in s.args:
        made = nest.statements[a]
        constant = isinstance(made, Compute) and made.op == "const"
        args.append(Const(0, made.dtype) if constant else None)
    if all(a is not None for a in args):
        return None
    if operand is DType.I64 and all(ranges[n].fits(DType.I32) for n in (number, *s.args)):
        operand = DType.I32
    return refuse_op(s.op, operand, args)


def _refuse_reduce(
    nest: FlatNest, number: int, s: Reduce, ranges: Sequence[Range]
) -> Refusal | None:
    arg = nest.statements[s.arg]
    is_wide = DType.I64 in (s.dtype, arg.dtype)
    if is_wide and not all(ranges[n].fits(DType.I32) for n in (number, s.arg)):
        return Refusal("op-not-on-device", f"the vector unit has no {s.op} of 64-bit integers")
    if isinstance(arg, IndexValue) and any(isinstance(nest.extent(a), Sym) for a in s.axes[1:]):
        return Refusal("symbolic-extent", "positions along several axes need their extents")
    return None
