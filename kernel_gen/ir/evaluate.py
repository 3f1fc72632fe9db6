"""The reference evaluator: what a graph means, in NumPy, slowly and accurately.

Integers and bools are computed in their own type and wrap. Floats are computed in float64:

    fast    each result keeps float64's precision within the range of its compute type
    strict  each result is rounded to its dtype, as eager does

A `cast` rounds to its dtype in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernel_gen.errors import InvalidGraph, InvalidInput
from kernel_gen.ir.arrays import Array, constant_array, dtype_of
from kernel_gen.ir.call import Call, describe, make_call
from kernel_gen.ir.evaluate_data import DATA
from kernel_gen.ir.evaluate_elementwise import ELEMENTWISE
from kernel_gen.ir.expand import expand
from kernel_gen.ir.graph import Attr, Graph, Node
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.rounding import cast_held, held, ranged, rounded, stored
from kernel_gen.ir.types import Sym, TensorType

Framework = Callable[[Node, tuple[Array, ...]], Sequence[Array]]
Environment = dict[int, Array]
_EXACT = frozenset((OpKind.VIEW, OpKind.JOIN, OpKind.INDEXED, OpKind.SOURCE, OpKind.CAST))


def evaluate(
    graph: Graph,
    inputs: Sequence[Array],
    numerics: str = "fast",
    framework: Framework | None = None,
) -> list[Array]:
    """The outputs of a verified graph; floats come back as float64, whatever their dtype.

    `inputs` are arrays of the inputs' dtypes and shapes, in order (bf16: `ml_dtypes.bfloat16`).
    `framework` runs framework nodes: (node, operands in storage type) -> results in storage type;
    without it they raise InvalidGraph. Raises InvalidInput if the inputs do not fit.
    """
    if numerics not in ("fast", "strict"):
        raise InvalidInput(f"numerics {numerics!r}: expected fast or strict")
    symbols = bind_symbols(graph, inputs)
    values: Environment = {
        item.value: held(array, graph.values[item.value].dtype)
        for item, array in zip(graph.inputs, inputs, strict=True)
    }
    for constant in graph.constants:
        type = graph.values[constant.value]
        values[constant.value] = held(constant_array(constant, type), type.dtype)
    with np.errstate(all="ignore"):
        _Evaluator(graph, symbols, numerics == "strict", framework).run(values)
    return [np.array(values[output.value]) for output in graph.outputs]


def bind_symbols(graph: Graph, inputs: Sequence[Array]) -> dict[str, int]:
    """Extents of the symbols, from the inputs' shapes; raises InvalidInput if they do not fit."""
    if len(inputs) != len(graph.inputs):
        raise InvalidInput(f"{len(inputs)} inputs for a graph of {len(graph.inputs)}")
    symbols: dict[str, int] = {}
    for position, (item, array) in enumerate(zip(graph.inputs, inputs, strict=True)):
        type = graph.values[item.value]
        fits = dtype_of(array) is type.dtype and array.ndim == type.rank
        for want, have in zip(type.shape, array.shape, strict=False):
            extent = symbols.setdefault(want.name, have) if isinstance(want, Sym) else want
            fits = fits and extent == have
        if not fits:
            raise InvalidInput(
                f"input {position}: {array.dtype}{list(array.shape)}, expected {describe(type)}"
            )
    return symbols


class _Evaluator:
    """Runs the nodes of one graph; composites by their expansion."""

    def __init__(
        self,
        graph: Graph,
        symbols: Mapping[str, int],
        strict: bool,
        framework: Framework | None,
    ) -> None:
        self._graph = graph
        self._symbols = symbols
        self._strict = strict
        self._framework = framework

    def run(self, values: Environment) -> None:
        """Adds the results of all nodes that are still needed to `values`."""
        last_use = {value: i for i, node in enumerate(self._graph.nodes) for value in node.inputs}
        for output in self._graph.outputs:
            last_use[output.value] = len(self._graph.nodes)
        for i, node in enumerate(self._graph.nodes):
            operands = tuple(values[value] for value in node.inputs)
            for value, result in zip(node.outputs, self._results(node, operands), strict=True):
                values[value] = result
            for value in (*node.inputs, *node.outputs):
                if last_use.get(value, i) <= i:
                    values.pop(value, None)

    def _results(self, node: Node, operands: tuple[Array, ...]) -> list[Array]:
        kind = OPS[node.op].kind
        if kind is OpKind.FRAMEWORK:
            return self._by_framework(node, operands)
        types = tuple(
            TensorType(self._graph.values[value].dtype, array.shape)
            for value, array in zip(node.inputs, operands, strict=True)
        )
        if kind is OpKind.COMPOSITE:
            return [self._composite(node, types, operands)]
        attrs = tuple((key, self._bound(key, value)) for key, value in node.attrs)
        call = make_call(node.op, types, attrs)
        return [self._primitive(call, operands, self._graph.values[node.output])]

    def _bound(self, key: str, value: Attr) -> Attr:
        """A shape attribute with extents in place of symbols."""
        if key != "shape" or not isinstance(value, tuple):
            return value
        return tuple(self._symbols[item] if isinstance(item, str) else item for item in value)

    def _composite(
        self, node: Node, types: tuple[TensorType, ...], operands: tuple[Array, ...]
    ) -> Array:
        body = expand(node, types)
        values = {item.value: array for item, array in zip(body.inputs, operands, strict=True)}
        _Evaluator(body, {}, self._strict, None).run(values)
        return values[body.outputs[0].value]

    def _primitive(self, call: Call, operands: tuple[Array, ...], type: TensorType) -> Array:
        if call.op == "cast":
            return cast_held(operands[0], call.x.dtype, type.dtype)
        if call.op in ELEMENTWISE:
            result = np.asarray(ELEMENTWISE[call.op](*operands))
        else:
            result = DATA[call.op](call, operands)
        if not type.dtype.is_float or OPS[call.op].kind in _EXACT:
            return result
        return (rounded if self._strict else ranged)(result, type.dtype)

    def _by_framework(self, node: Node, operands: tuple[Array, ...]) -> list[Array]:
        if self._framework is None:
            raise InvalidGraph(f"{node.op} {node.attr('target')}: only the framework runs it")
        dtypes = [self._graph.values[value].dtype for value in node.inputs]
        given = [stored(array, dtype) for array, dtype in zip(operands, dtypes, strict=True)]
        results = list(self._framework(node, tuple(given)))
        wanted = [self._graph.values[value].dtype for value in node.outputs]
        if [dtype_of(result) for result in results] != wanted:
            raise InvalidInput(
                f"{node.op} {node.attr('target')}: gave {[str(r.dtype) for r in results]}, "
                f"expected {[str(dtype) for dtype in wanted]}"
            )
        return [held(result, dtype) for result, dtype in zip(results, wanted, strict=True)]
