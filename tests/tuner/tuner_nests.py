"""Small hand-written nests and kernels for the tuner's tests."""

from __future__ import annotations

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.index import AxisTerm, Index
from kernel_gen.ir.loopnest import (
    Axis,
    Buffer,
    BufferRole,
    Compute,
    Load,
    LoopNest,
    Reduce,
    Statement,
    Store,
)
from kernel_gen.ir.types import TensorType


def at(*axes: str) -> tuple[Index, ...]:
    return tuple(Index(((AxisTerm(axis), 1),)) for axis in axes)


def buffer(shape: tuple[int, ...], dtype: DType = DType.F32, role: str = "input") -> Buffer:
    return Buffer(TensorType(dtype, shape), BufferRole(role))


def scale_nest(elems: int = 1000) -> LoopNest:
    """out[i] = 2 · x[i]."""
    return LoopNest(
        axes=(Axis("i0", elems),),
        buffers=(buffer((elems,)), buffer((elems,), role="output")),
        statements=(
            Load(0, at("i0"), DType.F32),
            Compute("const", (), DType.F32, attrs(value=2.0)),
            Compute("mul", (0, 1), DType.F32),
        ),
        stores=(Store(1, at("i0"), 2),),
    )


def sum_nest(rows: int = 8, columns: int = 500) -> LoopNest:
    """out[i] = Σ_j x[i, j]."""
    return LoopNest(
        axes=(Axis("i0", rows), Axis("i1", columns)),
        buffers=(buffer((rows, columns)), buffer((rows,), role="output")),
        statements=(Load(0, at("i0", "i1"), DType.F32), Reduce("sum", 0, ("i1",), DType.F32)),
        stores=(Store(1, at("i0"), 1),),
    )


def threshold_nest(elems: int = 64, *, computed: bool = True) -> LoopNest:
    """out[i] = x[i]·y[i] > 0, or x[i] > 0 where nothing is computed before."""
    statements: tuple[Statement, ...] = (
        Load(0, at("i0"), DType.F32),
        Load(1, at("i0"), DType.F32),
        Compute("const", (), DType.F32, attrs(value=0.0)),
        Compute("mul", (0, 1), DType.F32),
        Compute("gt", (3 if computed else 0, 2), DType.BOOL),
    )
    return LoopNest(
        axes=(Axis("i0", elems),),
        buffers=(buffer((elems,)), buffer((elems,)), buffer((elems,), DType.BOOL, "output")),
        statements=statements,
        stores=(Store(2, at("i0"), 4),),
    )


def strided_nest(in_strides: tuple[int, ...], out_strides: tuple[int, ...] | None) -> LoopNest:
    """out[i, j] = x[i, j] + x[i, j] over 6 × 5 elements in the given strides."""
    shape = (6, 5)
    return LoopNest(
        axes=(Axis("i0", 6), Axis("i1", 5)),
        buffers=(
            Buffer(TensorType(DType.F32, shape, in_strides), BufferRole.INPUT),
            Buffer(TensorType(DType.F32, shape, out_strides), BufferRole.OUTPUT),
        ),
        statements=(Load(0, at("i0", "i1"), DType.F32), Compute("add", (0, 0), DType.F32)),
        stores=(Store(1, at("i0", "i1"), 1),),
    )
