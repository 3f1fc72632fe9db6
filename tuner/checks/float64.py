"""Whole programs in float64: what their results would be without rounding.

Two right orders of rounding may give results far apart where a program magnifies errors: an
attention without a scale, say, in bf16. Which of the two is wrong only a third says.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.arrays import constant_array
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr, Constant, Graph, Input, Node
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.types import static_shape
from tuner.checks.compare import Tolerance, differing, program_tolerance, value_scale

Array = NDArray[Any]

# Times eager's errors, beside the tolerance. Seen in T5 in bf16, over six draws of inputs: a right
# plan's worst error was 2.0 tolerances where eager's was 0.9, as one of both may be lucky.
_TIMES_EAGER = 1.5
_STEPS = frozenset(("floor", "ceil", "round", "trunc", "sign", "floor_div", "remainder", "fmod"))


def decisions(graph: Graph) -> tuple[int, ...]:
    """Values that jump where floats pass a boundary: comparisons, positions, roundings."""
    return tuple(node.output for node in graph.nodes if _decides(graph, node))


def _decides(graph: Graph, node: Node) -> bool:
    if not any(graph.type_of(value).dtype.is_float for value in node.inputs):
        return False
    return node.op in _STEPS or not all(graph.type_of(v).dtype.is_float for v in node.outputs)


def in_float64(graph: Graph) -> Graph | None:
    """The program with float64 for all its floats, roundings between them left out. Its decisions
    are further inputs, behind the others: as eager takes them, for other ones are no error.

    None if it has a node of the framework: what that makes of float64 is not known.
    """
    if any(spec(node.op).kind is OpKind.FRAMEWORK for node in graph.nodes):
        return None
    decided = decisions(graph)
    return replace(
        graph,
        values=tuple(replace(kind, dtype=_wide(kind.dtype)) for kind in graph.values),
        inputs=(*graph.inputs, *(Input(value) for value in decided)),
        constants=tuple(_wide_constant(graph, constant) for constant in graph.constants),
        nodes=tuple(_wide_node(node) for node in graph.nodes if node.output not in decided),
    )


def _wide(dtype: DType) -> DType:
    return DType.F64 if dtype.is_float else dtype


def _wide_node(node: Node) -> Node:
    def wide(key: str, value: Attr) -> Attr:
        return _wide(DType(value)) if key == "dtype" and isinstance(value, str) else value

    return replace(node, attrs=tuple((key, wide(key, value)) for key, value in node.attrs))


def _wide_constant(graph: Graph, constant: Constant) -> Constant:
    kind = graph.type_of(constant.value)
    if not kind.dtype.is_float:
        return constant
    return replace(constant, data=constant_array(constant, kind).astype("<f8").tobytes())


def held_bytes(graph: Graph) -> int:
    """The most that a run of a static program holds at once: its inputs, and values from the node
    that makes them to the last that reads them. Views count as copies."""
    sizes = [math.prod(static_shape(kind.shape)) * kind.dtype.bytes for kind in graph.values]
    last = last_reads(graph)
    held = most = sum(sizes[given.value] for given in graph.inputs)
    dying: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        held += sizes[node.output]
        end = last.get(node.output, i)
        dying[end] = dying.get(end, 0) + sizes[node.output]
        most = max(most, held)
        held -= dying.get(i, 0)
    return most


def last_reads(graph: Graph) -> dict[int, int]:
    """Value -> the last node that reads it; for a result the number of nodes."""
    last = {value: i for i, node in enumerate(graph.nodes) for value in node.inputs}
    return last | {output.value: len(graph.nodes) for output in graph.outputs}


def is_no_worse(actual: Array, eager: Array, exact: Array, dtype: DType) -> bool:
    """Whether results of a float type are as right as eager's; `exact` are those in float64.

    An element is right within the tolerance of programs from eager's or from the exact one. The
    k-th worst of the others may be further from that by what the k-th worst of eager's are, and
    half as much again: where a program magnifies errors, eager's show how much and how often.
    """
    allowed = program_tolerance(dtype, value_scale(exact))
    bad = differing(actual, eager, allowed) & differing(actual, exact, allowed)
    count = int(np.count_nonzero(bad))
    usual = _errors(eager, exact, allowed)
    usual[~np.isfinite(usual)] = 0.0  # what eager could not say excuses nothing
    mine = np.sort(_errors(actual[bad], exact[bad], allowed), axis=None)
    worst = np.sort(usual, axis=None)[usual.size - count :]
    return bool(np.all(mine <= 1 + _TIMES_EAGER * worst))


def _errors(values: Array, exact: Array, allowed: Tolerance) -> Array:
    """How far values are off, in units of the tolerance."""
    with np.errstate(all="ignore"):
        limit = np.abs(exact) * allowed.relative + allowed.absolute
        return np.array(np.abs(values.astype(np.float64) - exact) / limit)
