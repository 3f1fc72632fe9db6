"""Casts, and nodes without operands: values that are made or rounded, not read."""

from __future__ import annotations

import numpy as np

from kernel_gen.fusion.pull.puller import Guards, Puller
from kernel_gen.fusion.region import Primitive, Scalar
from kernel_gen.fusion.views import Indices, RefusedError, int_attr
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Node
from kernel_gen.ir.loopnest import IndexValue, Load


def pull_cast(puller: Puller, primitive: Primitive, at: Indices, guards: Guards) -> int:
    """A cast of the program rounds: to a narrow type, and from one before it widens."""
    (value,) = primitive.node.inputs
    source, target = puller.dtype(value), puller.dtype(primitive.node.output)
    made = puller.pull(value, at, guards)
    if not primitive.explicit or source is target:
        return puller.nest.cast(made, target.compute)
    cast = puller.nest.cast(rounded(puller, made, source), target)
    return rounded(puller, cast, target)


def rounded(puller: Puller, statement: int, dtype: DType) -> int:
    """`statement` rounded to a narrow storage type and back, unless it has just been read."""
    made = puller.nest.statements[statement]
    if isinstance(made, Load) and puller.dtype(made.buffer) is dtype:
        return statement
    return puller.nest.cast(puller.nest.cast(statement, dtype), dtype.compute)


def pull_source(puller: Puller, node: Node, at: Indices) -> int:
    """A constant, or start + step · position."""
    nest, dtype = puller.nest, puller.dtype(node.output)
    if node.op == "full":
        return nest.const(literal(puller, node.attr("value"), dtype), dtype.compute)
    position = at[int_attr(node, "dim")]
    start, step = _number(node, "start"), _number(node, "step")
    if isinstance(start, int) and isinstance(step, int):
        index = nest.add(IndexValue(position * step + start))
        return nest.cast(index, dtype.compute)
    index = nest.cast(nest.add(IndexValue(position)), dtype.compute)
    product = nest.compute("mul", (index, nest.const(step, dtype.compute)), dtype.compute)
    offset = nest.const(start, dtype.compute)
    return nest.compute("add", (product, offset), dtype.compute)


def literal(puller: Puller, value: object, dtype: DType) -> Scalar:
    """A number of the program as a constant of `dtype`; strict nests hold it in its type."""
    if not isinstance(value, bool | int | float):
        raise RefusedError("bad-attribute", f"scalar {value!r}")
    if puller.strict and dtype.is_float:
        return float(np.asarray(value).astype(numpy_dtype(dtype.compute)))
    return value


def _number(node: Node, key: str) -> int | float:
    value = node.attr(key)
    if not isinstance(value, int | float):
        raise RefusedError("bad-attribute", f"{node.op} {node.name}: {key}={value!r}")
    return value
