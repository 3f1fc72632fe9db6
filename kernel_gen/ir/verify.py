"""The graph verifier, run between stages: limits, SSA form, types.

A graph may come from outside, so nothing in it is taken for granted. Each error names the node, the
rule and the values concerned.
"""

from __future__ import annotations

from collections import Counter

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.call import describe, make_call
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.infer import infer
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.types import Sym, TensorType, static_shape

MAX_NODES = 20_000
MAX_VALUES = 100_000
MAX_CONSTANT_BYTES = 1 << 20
MAX_CONSTANTS_BYTES = 16 << 20
MAX_OPERANDS = 4_096  # of one node
_MAX_ELEMS = 2**48  # of one static value; bounds all byte counts below 2**63


def verify(graph: Graph) -> None:
    """Raises InvalidGraph at the first broken rule; linear in the size of the graph."""
    check_counts(len(graph.nodes), len(graph.values), len(graph.outputs))
    _check_symbols(graph)
    _check_constants(graph)
    _check_nodes(graph, _sources(graph))
    _check_outputs(graph)
    _check_strides(graph)


def node_label(position: int, node: Node) -> str:
    """A node in messages: `node 3 (softmax "h.0.attn")`."""
    return f"node {position} ({node.op[:40]}{f' {node.name[:80]!r}' if node.name else ''})"


def check_counts(nodes: int, values: int, outputs: int) -> None:
    """Raises InvalidGraph if a graph has more of anything than is handled."""
    for what, count, limit in (
        ("nodes", nodes, MAX_NODES),
        ("values", values, MAX_VALUES),
        ("outputs", outputs, MAX_VALUES),
    ):
        if count > limit:
            raise InvalidGraph(f"graph: {count} {what} are above the limit of {limit}")


def _check_symbols(graph: Graph) -> None:
    names = [symbol.name for symbol in graph.symbols]
    if len(set(names)) != len(names):
        raise InvalidGraph(f"graph: symbols {names} are not unique")
    known = {Sym(name) for name in names}
    for value, type in enumerate(graph.values):
        for dim in type.shape:
            if isinstance(dim, Sym) and dim not in known:
                raise InvalidGraph(f"value {value}: symbol {dim.name} has no range in the graph")
        if type.is_static and type.elems > _MAX_ELEMS:
            raise InvalidGraph(f"value {value}: {describe(type)} has too many elements")


def _type(graph: Graph, value: int, place: str) -> TensorType:
    if not 0 <= value < len(graph.values):
        raise InvalidGraph(f"{place}: there is no value {value}")
    return graph.values[value]


def _check_constants(graph: Graph) -> None:
    total = 0
    for position, constant in enumerate(graph.constants):
        place = f"constant {position}"
        type = _type(graph, constant.value, place)
        if not type.is_static or type.nbytes != len(constant.data):
            raise InvalidGraph(f"{place}: {len(constant.data)} bytes for {describe(type)}")
        if len(constant.data) > MAX_CONSTANT_BYTES:
            raise InvalidGraph(f"{place}: {len(constant.data)} bytes, limit {MAX_CONSTANT_BYTES}")
        total += len(constant.data)
    if total > MAX_CONSTANTS_BYTES:
        raise InvalidGraph(f"graph: constants of {total} bytes, limit {MAX_CONSTANTS_BYTES}")


def _sources(graph: Graph) -> set[int]:
    """Values that exist before the first node; each is defined once."""
    defined: set[int] = set()
    sources = [(f"input {i}", item.value) for i, item in enumerate(graph.inputs)]
    sources += [(f"constant {i}", item.value) for i, item in enumerate(graph.constants)]
    for place, value in sources:
        _type(graph, value, place)
        if value in defined:
            raise InvalidGraph(f"{place}: value {value} is already defined")
        defined.add(value)
    return defined


def _check_nodes(graph: Graph, defined: set[int]) -> None:
    """Topological order, one definition per value, and the typing rule of each node."""
    for position, node in enumerate(graph.nodes):
        place = node_label(position, node)
        if len(node.inputs) > MAX_OPERANDS:
            raise InvalidGraph(f"{place}: {len(node.inputs)} operands, limit {MAX_OPERANDS}")
        for value in node.inputs:
            _type(graph, value, place)
            if value not in defined:
                raise InvalidGraph(f"{place}: reads value {value} before it is defined")
        for value in node.outputs:
            _type(graph, value, place)
            if value in defined:
                raise InvalidGraph(f"{place}: value {value} is already defined")
            defined.add(value)
        _check_node(graph, place, node)
    missing = [value for value in range(len(graph.values)) if value not in defined]
    if missing:
        raise InvalidGraph(f"graph: values {missing[:10]} are never defined")


def _check_node(graph: Graph, place: str, node: Node) -> None:
    operands = tuple(graph.values[value] for value in node.inputs)
    try:
        _check_attr_symbols(graph, node)
        if node.op in OPS and OPS[node.op].kind is OpKind.FRAMEWORK:
            _check_framework(node, operands)
            return
        expected = infer(node.op, operands, node.attrs)
    except InvalidGraph as error:
        raise InvalidGraph(f"{place}: {error}; values {list(node.inputs)}") from None
    if len(node.outputs) != 1:
        raise InvalidGraph(f"{place}: has {len(node.outputs)} outputs, expected 1")
    found = graph.values[node.outputs[0]]
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        raise InvalidGraph(
            f"{place}: value {node.outputs[0]} is {describe(found)}, "
            f"the op gives {describe(expected)}"
        )


def _check_attr_symbols(graph: Graph, node: Node) -> None:
    shape = node.attr("shape")
    known = {symbol.name for symbol in graph.symbols} if isinstance(shape, tuple) else set()
    for extent in shape if isinstance(shape, tuple) else ():
        if isinstance(extent, str) and extent not in known:
            raise InvalidGraph(f"symbol {extent[:40]!r} has no range in the graph")


def _check_framework(node: Node, operands: tuple[TensorType, ...]) -> None:
    call = make_call(node.op, operands, node.attrs)
    for key in ("target", "code", "sentence"):
        if not isinstance(call.attrs[key], str):
            call.fail(f"{key} must be text")


def _check_outputs(graph: Graph) -> None:
    for position, output in enumerate(graph.outputs):
        _type(graph, output.value, f"output {position}")
        for what, source in (("mutates", output.mutates), ("aliases", output.alias_of)):
            if source is not None and not 0 <= source < len(graph.inputs):
                raise InvalidGraph(f"output {position}: {what} input {source}, which is not there")
    written = Counter(output.mutates for output in graph.outputs if output.mutates is not None)
    repeated = sorted(source for source, count in written.items() if count > 1)
    if repeated:
        raise InvalidGraph(f"graph: inputs {repeated} are written more than once")


def _check_strides(graph: Graph) -> None:
    """Strides are not negative; those of intermediate values are dense, in any order of dims."""
    boundary = {item.value for item in graph.inputs} | {item.value for item in graph.outputs}
    for value, type in enumerate(graph.values):
        if type.strides is None:
            continue
        if value not in boundary and not _is_dense(type):
            raise InvalidGraph(f"value {value}: strides {type.strides} leave holes or overlap")
        if any(not 0 <= stride < 2**48 for stride in type.strides):
            raise InvalidGraph(f"value {value}: strides {type.strides} are out of range")


def _is_dense(type: TensorType) -> bool:
    """Whether the strides are those of a contiguous tensor whose dimensions were permuted."""
    if not type.is_static or type.strides is None:
        return False
    shape = static_shape(type.shape)
    pairs = sorted((s, n) for n, s in zip(shape, type.strides, strict=True) if n != 1)
    step = 1
    for stride, extent in pairs:
        if stride != step:
            return False
        step *= extent
    return True
