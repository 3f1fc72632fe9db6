"""How the product may read its operands: in place, packed per call, packed at load."""

from __future__ import annotations

import itertools
from dataclasses import replace

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.inputs import Direct
from kernel_gen.codegen.cpu.matmul.problem import Problem, plain_load
from kernel_gen.codegen.cpu.matmul.runs import left_runs
from kernel_gen.codegen.cpu.matmul.text import index_text
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Tiling
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import FloorDiv, Index, Mod
from kernel_gen.ir.loopnest import Axis, BufferRole, Compute, Load

MAX_DOT_ROWS = 8
"""Rows of a tile with vectors along k, whose sums must fit the registers."""


def left_in_place(problem: Problem) -> Direct | None:
    """A as it lies in memory, if the row axes walk it as one and one depth axis addresses it."""
    load = plain_load(problem.nest, problem.product.lhs)
    if load is None or not _stored_as_summed(problem, load):
        return None
    if len(problem.depth) > 1 or not _walked_as_one(load.index[0], problem.rows):
        return None
    return _direct(load, problem.rows, problem.depth)


def right_in_place(problem: Problem, mode: Operand) -> tuple[Direct, ...] | None:
    """B of each section as it lies in memory, if that suits `mode` and all sections step alike.

    DIRECT wants columns of stride 1, DOT wants stride 1 along k; one depth axis addresses B.
    """
    if len(problem.depth) > 1 or (not problem.cols and mode is Operand.DIRECT):
        return None
    found = [_section_in_place(problem, number, mode) for number in range(problem.sections)]
    directs = tuple(direct for direct in found if direct is not None)
    kinds = {(direct.line_stride, direct.step, direct.stored) for direct in directs}
    if len(directs) < len(found) or len(kinds) > 1:
        return None
    ((line_stride, step, _),) = kinds
    return directs if (line_stride if mode is Operand.DIRECT else step) == 1 else None


def _section_in_place(problem: Problem, number: int, mode: Operand) -> Direct | None:
    root = problem.section(number).rhs
    whole = _bytes_of(problem, root) if mode is Operand.DOT else None
    load = plain_load(problem.nest, root if whole is None else whole)
    if load is None:
        return None
    stored = _stored(problem, root, whole) if mode is Operand.DOT else None
    if stored is None and not _stored_as_summed(problem, load):
        return None
    found = _direct(load, problem.cols[-1:], problem.depth)
    return replace(found, stored=stored) if found else None


def _bytes_of(problem: Problem, position: int) -> int | None:
    """The load of 8-bit integers that casts make floats of, all of which hold each of them."""
    statements = problem.nest.statements
    statement = statements[position]
    while isinstance(statement, Compute) and statement.op == "cast" and statement.dtype.is_float:
        (position,) = statement.args
        statement = statements[position]
    return position if statement.dtype in (DType.I8, DType.U8) else None


def _stored(problem: Problem, root: int, whole: int | None) -> DType | None:
    """The narrow type of an operand's elements, which are widened as they are read."""
    if whole is None:
        return _narrow(problem, root)
    return problem.nest.statements[whole].dtype if problem.product.dtype is DType.F32 else None


def _stored_as_summed(problem: Problem, load: Load) -> bool:
    """Whether elements need no conversion before they are multiplied."""
    kept = problem.nest.buffers[load.buffer].type.dtype
    return load.dtype is problem.product.dtype and kept is load.dtype


def _walked_as_one(index: Index, axes: tuple[Axis, ...]) -> bool:
    """Whether the offset is linear in the row-major position in `axes`."""
    return all(
        index.coeff(a.name) == index.coeff(b.name) * extent(b) for a, b in itertools.pairwise(axes)
    )


def _direct(load: Load, line: tuple[Axis, ...], depth: tuple[Axis, ...]) -> Direct | None:
    (index,) = load.index
    names = {axis.name for axis in line + depth}
    rest = index.substitute({name: Index() for name in names})
    if any(isinstance(t, FloorDiv | Mod) and t.index.axes() & names for t, _ in index.terms):
        return None
    return Direct(
        buffer=load.buffer,
        offset=index_text(rest),
        line_stride=index.coeff(line[-1].name) if line else 0,
        step=index.coeff(depth[0].name) if depth else 0,
    )


def left_modes(problem: Problem) -> tuple[Operand, ...]:
    """Possible modes, the preferred one last."""
    if left_in_place(problem):
        return (Operand.CALL, Operand.DIRECT)
    return (Operand.CALL, Operand.POINTERS) if left_runs(problem) else (Operand.CALL,)


def may_turn(problem: Problem) -> bool:
    """Whether rows may run along their first axis innermost, so that the rows of a tile lie at one
    place in the padding, which is then left out."""
    runs = left_runs(problem)
    return len(problem.rows) > 1 and runs is not None and bool(runs.guards)


def refuse_turned(problem: Problem, tiling: Tiling) -> Refusal | None:
    """Only rows behind pointers may be in any order."""
    if tiling.turned and not (may_turn(problem) and tiling.left is Operand.POINTERS):
        return Refusal("operand-layout", "rows that are turned are read through pointers")
    return None


def right_modes(problem: Problem) -> tuple[Operand, ...]:
    """Possible modes, the preferred one first."""
    modes = [Operand.LOAD] if constant_buffers(problem) is not None else [Operand.CALL]
    in_place = (Operand.DIRECT, Operand.DOT)
    modes += [mode for mode in in_place if right_in_place(problem, mode) is not None]
    return tuple(modes)


def holds_pairs(problem: Problem) -> bool:
    """Whether both operands are bf16 as stored, so that packing them as bf16 rounds nothing."""
    roots = (problem.product.lhs, *(problem.section(n).rhs for n in range(problem.sections)))
    return (
        problem.product.dtype is DType.F32
        and len(problem.depth) == 1
        and all(_narrow(problem, root) is DType.BF16 for root in roots)
    )


def _narrow(problem: Problem, position: int) -> DType | None:
    """The narrow float that a load reads, where products are computed in fp32."""
    statement = problem.nest.statements[position]
    if not isinstance(statement, Load) or statement.guards:
        return None
    kept = problem.nest.buffers[statement.buffer].type.dtype
    narrow = problem.product.dtype is DType.F32 and kept in (DType.BF16, DType.F16)
    return kept if narrow else None


def refuse_pairs(problem: Problem, tiling: Tiling) -> Refusal | None:
    """Pairs need packed operands, and blocks that cut none of them."""
    if not tiling.pairs:
        return None
    packed = tiling.left is Operand.CALL and tiling.right.is_packed
    if not holds_pairs(problem) or not packed or tiling.kc % 2:
        return Refusal("operand-layout", "pairs of bf16 need packed operands that are stored so")
    return None


def refuse_joined(problem: Problem, tiling: Tiling) -> Refusal | None:
    """Joined columns are of several axes, and no straight line in memory: they are packed."""
    if tiling.joined and not (problem.joins_cols and tiling.right.is_packed):
        return Refusal("operand-layout", "columns that are joined need a packed operand")
    return None


def fits_in_place(problem: Problem, tiling: Tiling) -> bool:
    """Whether tiles read in place stay inside their operands: a tail moves back to the last full
    tile, which must exist. Vectors along k need k of stride 1 in both operands."""
    left = left_in_place(problem) if tiling.left is Operand.DIRECT else None
    if left is not None and 0 < problem.m < tiling.mr:
        return False
    if tiling.right is Operand.DOT:
        straight = tiling.left is not Operand.POINTERS and (left is None or left.step == 1)
        return straight and tiling.mr <= MAX_DOT_ROWS
    if tiling.right is Operand.DIRECT and problem.inner_cols:
        tail = tiling.tail_nv(problem) * tiling.lanes
        return problem.inner_cols >= tail
    return True


def constant_buffers(problem: Problem) -> tuple[int, ...] | None:
    """For each section the one constant buffer that its right operand is computed from, so that
    it can be packed at load; None if some section reads others or none."""
    found = [_constant_buffer(problem, section) for section in problem.right]
    buffers = tuple(buffer for buffer in found if buffer is not None)
    return buffers if len(buffers) == len(found) else None


def _constant_buffer(problem: Problem, section: tuple[int, ...]) -> int | None:
    statements = [problem.nest.statements[p] for p in section]
    if not all(isinstance(s, Load | Compute) for s in statements):
        return None
    buffers = {s.buffer for s in statements if isinstance(s, Load)}
    if len(buffers) != 1:
        return None
    (buffer,) = buffers
    constant = problem.nest.buffers[buffer].role is BufferRole.CONSTANT
    return buffer if constant and not _read_elsewhere(problem, buffer) else None


def _read_elsewhere(problem: Problem, buffer: int) -> bool:
    """A packed operand is no longer there in its own layout for other statements."""
    others = set(problem.left) | set(problem.after)
    statements = (problem.nest.statements[p] for p in others)
    return any(isinstance(s, Load) and s.buffer == buffer for s in statements)
