"""Nests with one matrix product, built from a short description, and operands for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.index import Index, axis_index
from kernel_gen.ir.loopnest import (
    Axis,
    Buffer,
    BufferRole,
    Compute,
    Contract,
    Load,
    LoopNest,
    Reduce,
    Statement,
    Store,
)
from kernel_gen.ir.types import TensorType

Array = NDArray[Any]
PROLOGUES = ("none", "relu", "layer_norm", "softmax", "row_scale")
EPILOGUES = ("none", "bias", "bias_relu", "residual", "gate", "row_scale", "two_stores")
ROW_EPILOGUES = ("layer_norm", "softmax", "norm_of_sum", "row_statistics")


@dataclass(frozen=True, slots=True)
class Case:
    """C[b, m, n] = epilogue(Σ_k prologue(A)[b, m, k] · B[b, k, n]).

    Layouts are the order of the axes in memory; an operand whose layout lacks "b" is shared by all
    products of the batch.
    """

    m: int
    n: int
    k: int
    b: int = 1
    left: str = "mk"
    right: str = "kn"
    out: str = "mn"
    stored: DType = DType.F32
    computed: DType = DType.F32
    constant: bool = True
    prologue: str = "none"
    epilogue: str = "none"


@dataclass(slots=True)
class _Draft:
    case: Case
    buffers: list[Buffer] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)

    def extents(self, layout: str) -> tuple[int, ...]:
        sizes = {"b": self.case.b, "m": self.case.m, "n": self.case.n, "k": self.case.k}
        return tuple(sizes[axis] for axis in layout)

    def indices(self, layout: str) -> tuple[Index, ...]:
        return tuple(axis_index(axis) for axis in layout)

    def buffer(self, layout: str, role: BufferRole) -> int:
        self.buffers.append(Buffer(TensorType(self.case.stored, self.extents(layout)), role))
        return len(self.buffers) - 1

    def add(self, statement: Statement) -> int:
        self.statements.append(statement)
        return len(self.statements) - 1

    def load(self, layout: str, role: BufferRole = BufferRole.INPUT) -> int:
        buffer = self.buffer(layout, role)
        return self.add(Load(buffer, self.indices(layout), self.case.computed))

    def op(self, name: str, *args: int) -> int:
        return self.add(Compute(name, args, self.case.computed))

    def const(self, value: float) -> int:
        return self.add(Compute("const", (), self.case.computed, attrs(value=value)))

    def total(self, op: str, arg: int, axis: str = "k") -> int:
        return self.add(Reduce(op, arg, (axis,), self.case.computed))

    def store(self, layout: str, statement: int) -> None:
        buffer = self.buffer(layout, BufferRole.OUTPUT)
        self.stores.append(Store(buffer, self.indices(layout), statement))


def build(case: Case) -> LoopNest:
    """The nest of a case; its axes are b (if b > 1), m, n, k."""
    draft = _Draft(case)
    left = _prologue(draft, draft.load(case.left))
    role = BufferRole.CONSTANT if case.constant else BufferRole.INPUT
    right = draft.load(case.right, role)
    product = draft.add(Contract(left, right, ("k",), case.computed))
    _epilogue(draft, product)
    axes = [Axis("m", case.m), Axis("n", case.n), Axis("k", case.k)]
    if "b" in case.out:
        axes.insert(0, Axis("b", case.b))
    return LoopNest(tuple(axes), tuple(draft.buffers), tuple(draft.statements), tuple(draft.stores))


def sections(case: Case, *, buffers: int, joint: bool) -> LoopNest:
    """Products of one left operand with `buffers` constants, each holding two of the matrices.

    `joint`: one store of the product of all sums; else one store for each.
    """
    draft = _Draft(case)
    left = _prologue(draft, draft.load("mk"))
    roles = BufferRole.CONSTANT if case.constant else BufferRole.INPUT
    products = []
    for _ in range(buffers):
        kind = TensorType(case.stored, (2 * case.n, case.k))
        draft.buffers.append(Buffer(kind, roles))
        for half in range(2):
            row = axis_index("n") + half * case.n
            index = (row, axis_index("k"))
            right = draft.add(Load(len(draft.buffers) - 1, index, case.computed))
            products.append(draft.add(Contract(left, right, ("k",), case.computed)))
    biases = [draft.op("add", p, draft.load("n")) for p in products]
    if joint:
        total = biases[0]
        for other in biases[1:]:
            total = draft.op("mul", total, draft.op("tanh", other))
        draft.store("mn", total)
    else:
        for layout, value in zip(("mn", "nm", "mn", "mn"), biases, strict=False):
            draft.store(layout, value)
    axes = (Axis("m", case.m), Axis("n", case.n), Axis("k", case.k))
    return LoopNest(axes, tuple(draft.buffers), tuple(draft.statements), tuple(draft.stores))


def _prologue(draft: _Draft, x: int) -> int:
    match draft.case.prologue:
        case "relu":
            return draft.op("relu", x)
        case "layer_norm":
            return _layer_norm(draft, x, "k")
        case "softmax":
            return _softmax(draft, x, "k")
        case "row_scale":
            return draft.op("mul", x, draft.load("m"))
        case _:
            return x


def _softmax(draft: _Draft, x: int, axis: str) -> int:
    shifted = draft.op("sub", x, draft.total("amax", x, axis))
    powers = draft.op("exp", shifted)
    return draft.op("div", powers, draft.total("sum", powers, axis))


def _layer_norm(draft: _Draft, x: int, axis: str) -> int:
    scale = draft.const(1.0 / draft.extents(axis)[0])
    mean = draft.op("mul", draft.total("sum", x, axis), scale)
    centred = draft.op("sub", x, mean)
    square = draft.op("mul", centred, centred)
    variance = draft.op("mul", draft.total("sum", square, axis), scale)
    raised = draft.op("add", variance, draft.const(0.125))
    root = draft.op("pow", raised, draft.const(0.5))
    weighted = draft.op("mul", draft.op("div", centred, root), draft.load(axis))
    return draft.op("add", weighted, draft.load(axis))


def _epilogue(draft: _Draft, product: int) -> None:
    out = draft.case.out
    match draft.case.epilogue:
        case "bias":
            draft.store(out, draft.op("add", product, draft.load("n", BufferRole.CONSTANT)))
        case "bias_relu":
            biased = draft.op("add", product, draft.load("n", BufferRole.CONSTANT))
            draft.store(out, draft.op("relu", biased))
        case "residual":
            draft.store(out, draft.op("add", product, draft.load(out)))
        case "gate":
            draft.store(out, draft.op("mul", draft.op("tanh", product), draft.load(out)))
        case "row_scale":
            draft.store(out, draft.op("mul", product, draft.load("m")))
        case "layer_norm":
            draft.store(out, _layer_norm(draft, product, "n"))
        case "softmax":
            draft.store(out, _softmax(draft, draft.op("tanh", product), "n"))
        case "norm_of_sum":
            total = draft.op("add", draft.op("add", product, draft.load("n")), draft.load(out))
            normed = _layer_norm(draft, total, "n")
            draft.store(out, total)
            draft.store(out, normed)
        case "row_statistics":
            draft.store(out.replace("n", ""), draft.total("amax", product, "n"))
            draft.store(out.replace("n", ""), draft.total("sum", product, "n"))
        case "two_stores":
            draft.store(out, product)
            draft.store(out, draft.op("neg", product))
        case _:
            draft.store(out, product)


def operands(nest: LoopNest, seed: int) -> list[Array]:
    """Random arrays for the buffers that are read, in order."""
    random = np.random.default_rng(seed)
    return [
        _random(random, buffer.type)
        for buffer in nest.buffers
        if buffer.role is not BufferRole.OUTPUT
    ]


def _random(random: np.random.Generator, kind: TensorType) -> Array:
    shape = tuple(d for d in kind.shape if isinstance(d, int))
    if kind.dtype.is_float:
        return random.standard_normal(shape).astype(numpy_dtype(kind.dtype))
    return random.integers(-9, 9, shape).astype(numpy_dtype(kind.dtype))
