"""GraphBuilder: the one way to make a graph by hand; types are inferred, the result is verified.

b = GraphBuilder()
x = b.input(TensorType(DType.F32, (4, 8)))
y = b.op("softmax", x, dim=1)
b.output(b.op("mul", y, y))
graph = b.build()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.arrays import array_bytes, dtype_of
from kernel_gen.ir.graph import (
    Attr,
    Attrs,
    Constant,
    Graph,
    Input,
    InputKind,
    Node,
    Output,
    SymbolRange,
    attrs,
)
from kernel_gen.ir.infer import infer
from kernel_gen.ir.types import Dim, TensorType, ValueDomain
from kernel_gen.ir.verify import verify

ANY_VALUE = ValueDomain()


class GraphBuilder:
    """Collects values and nodes in order. Values are numbered as they are made."""

    def __init__(self) -> None:
        self._values: list[TensorType] = []
        self._inputs: list[Input] = []
        self._constants: list[Constant] = []
        self._nodes: list[Node] = []
        self._outputs: list[Output] = []
        self._symbols: list[SymbolRange] = []

    def type_of(self, value: int) -> TensorType:
        """Type of a value made earlier; raises InvalidGraph if there is none."""
        if not 0 <= value < len(self._values):
            raise InvalidGraph(f"there is no value {value}")
        return self._values[value]

    def symbol(self, name: str, low: int, high: int, hint: int) -> None:
        """Declare the range of a symbolic dimension."""
        self._symbols.append(SymbolRange(name, low, high, hint))

    def largest(self, extent: Dim) -> int:
        """An extent, or the most that a symbolic one may be."""
        if isinstance(extent, int):
            return extent
        return next(s.high for s in self._symbols if s.name == extent.name)

    def input(
        self,
        type: TensorType,
        kind: InputKind = InputKind.USER,
        domain: ValueDomain = ANY_VALUE,
        name: str = "",
    ) -> int:
        value = self._value(type)
        self._inputs.append(Input(value, kind, domain, name))
        return value

    def constant(self, array: NDArray[np.generic]) -> int:
        """A constant with the array's dtype, shape and (copied) contents."""
        value = self._value(TensorType(dtype_of(array), array.shape))
        self._constants.append(Constant(value, array_bytes(array)))
        return value

    @overload
    def op(
        self,
        op: str,
        /,
        *values: int,
        out_types: None = None,
        name: str = "",
        **attributes: object,
    ) -> int: ...

    @overload
    def op(
        self,
        op: str,
        /,
        *values: int,
        out_types: Sequence[TensorType],
        name: str = "",
        **attributes: object,
    ) -> tuple[int, ...]: ...

    def op(
        self,
        op: str,
        /,
        *values: int,
        out_types: Sequence[TensorType] | None = None,
        name: str = "",
        **attributes: object,
    ) -> int | tuple[int, ...]:
        """Apply an op; the result's type is inferred.

        With `out_types` (framework nodes, which have no typing rule) the result is a tuple with one
        value per type. Attributes may be lists, NumPy integers and DTypes; they are normalised.
        """
        if out_types is None:
            return self.apply(op, values, attributes, name)
        return self._node(op, values, out_types, _attrs(attributes), name)

    def apply(
        self, op: str, values: tuple[int, ...], attributes: Mapping[str, object], name: str = ""
    ) -> int:
        """`op` with operands and attributes in one piece each; the result's type is inferred."""
        given = _attrs(attributes)
        type = infer(op, [self.type_of(value) for value in values], given)
        return self._node(op, values, (type,), given, name)[0]

    def output(self, value: int, mutates: int | None = None, alias_of: int | None = None) -> None:
        self._outputs.append(Output(value, mutates, alias_of))

    def build(self) -> Graph:
        """The verified graph; raises InvalidGraph."""
        graph = Graph(
            tuple(self._values),
            tuple(self._inputs),
            tuple(self._nodes),
            tuple(self._outputs),
            tuple(self._constants),
            tuple(self._symbols),
        )
        verify(graph)
        return graph

    def _node(
        self,
        op: str,
        values: tuple[int, ...],
        types: Sequence[TensorType],
        given: Attrs,
        name: str,
    ) -> tuple[int, ...]:
        outputs = tuple(self._value(type) for type in types)
        self._nodes.append(Node(op, values, outputs, given, name))
        return outputs

    def _value(self, type: TensorType) -> int:
        self._values.append(type)
        return len(self._values) - 1


def _attrs(attributes: Mapping[str, object]) -> Attrs:
    return attrs(**{key: _attr(value) for key, value in attributes.items()})


def _attr(value: object) -> Attr:
    """An attribute in the form that graphs hold: plain scalars and tuples."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, tuple | list):
        return tuple(_attr(item) for item in value)
    raise InvalidGraph(f"attribute {value!r} of {type(value).__name__} has no form in a graph")
