"""What a case holds of what random graphs are meant to hold, counted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernel_gen.ir.arrays import Array
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.types import TensorType, contiguous_strides, static_shape
from tests.soak.fuzz.cases import FuzzCase
from tests.strategy_draft import WILD

_NOT_DRAWN = frozenset(("framework",))  # which back ends leave to torch
OPS_DRAWN = frozenset(OPS) - _NOT_DRAWN
FEATURES = frozenset(
    ("strict numerics", "no element", "an extent of 1", "rank 0", "a permuted input",
     "an input with gaps", "an input that repeats elements", "NaN", "infinity",
     "negative zero", "denormal", "integer extreme", "floats of any size",
     "a reduction of two axes", "work before a product", "work after a product", "two outputs",
     "a value read twice")
)  # fmt: skip
_PRODUCTS = ("matmul", "linear", "convolution", "attention", "conv_transpose")


def ops(case: FuzzCase) -> Iterator[str]:
    """Each node's op with the type it reads (of a source: makes)."""
    for node in case.graph.nodes:
        yield f"{node.op} {case.graph.type_of((node.inputs or node.outputs)[0]).dtype.value}"


def features(case: FuzzCase) -> set[str]:
    """Those of `FEATURES` that the case has."""
    graph = case.graph
    found = set(_of_nodes(graph))
    for item, array in zip(graph.inputs, case.inputs, strict=True):
        found.update(_of_layout(graph.type_of(item.value)), _of_values(array))
        if item.name == WILD:
            found.add("floats of any size")
    if case.numerics == "strict":
        found.add("strict numerics")
    if len(graph.outputs) > 1:
        found.add("two outputs")
    return found


def _of_layout(type: TensorType) -> Iterator[str]:
    shape = static_shape(type.shape)
    if not shape:
        yield "rank 0"
    if 0 in shape:
        yield "no element"
    if 1 in shape:
        yield "an extent of 1"
    walked = [s for n, s in zip(shape, type.element_strides, strict=True) if n > 1]
    if 0 in walked:
        yield "an input that repeats elements"
    if walked != sorted(walked, reverse=True):
        yield "a permuted input"
    if max(walked, default=0) > max(contiguous_strides(shape), default=0):
        yield "an input with gaps"


def _of_values(array: Array) -> Iterator[str]:
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        if np.isin(array, (limits.min, limits.max)).any() and limits.min < 0:
            yield "integer extreme"
    if array.dtype.kind not in "fV":
        return
    wide = array.astype(np.float64)
    if np.isnan(wide).any():
        yield "NaN"
    if np.isinf(wide).any():
        yield "infinity"
    if (np.signbit(wide) & (wide == 0)).any():
        yield "negative zero"
    if array.dtype == np.float32 and ((wide != 0) & (np.abs(wide) < 2.0**-126)).any():
        yield "denormal"


def _of_nodes(graph: Graph) -> Iterator[str]:
    makers = {value: node for node in graph.nodes for value in node.outputs}
    readers: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in set(node.inputs):
            readers.setdefault(value, []).append(node)
        dims = node.attr("dims")
        if OPS[node.op].kind is OpKind.REDUCTION and isinstance(dims, tuple) and len(dims) > 1:
            yield "a reduction of two axes"
        if node.op in _PRODUCTS and any(value in makers for value in node.inputs):
            yield "work before a product"
        if any(value in makers and makers[value].op in _PRODUCTS for value in node.inputs):
            yield "work after a product"
    if any(len(nodes) > 1 for nodes in readers.values()):
        yield "a value read twice"
