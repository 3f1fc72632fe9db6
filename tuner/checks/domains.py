"""What is known of every value of a graph, from the domains of its inputs onwards.

Checks draw operands of a group from it: the variance that feeds a reciprocal square root is not
negative, an index stays inside its table. Rules are one-sided: a value without a rule is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernel_gen.ir.arrays import constant_array
from kernel_gen.ir.graph import Constant, Graph, Input, InputKind, Node
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.types import ValueDomain
from tuner.checks.bags import bag_positions

FREE = ValueDomain()
_NOT_NEGATIVE = ValueDomain(low=0.0)
_UNIT = ValueDomain(low=0.0, high=1.0)

_FIXED: dict[str, ValueDomain] = {
    **dict.fromkeys(
        ("exp", "exp2", "abs", "sqrt", "rsqrt", "relu", "square", "var", "std", "softplus"),
        _NOT_NEGATIVE,
    ),
    **dict.fromkeys(("sigmoid", "softmax", "hardsigmoid"), _UNIT),
    "relu6": ValueDomain(low=0.0, high=6.0),
    "tanh": ValueDomain(low=-1.0, high=1.0),
    "cosh": ValueDomain(low=1.0),
    "log_softmax": ValueDomain(high=0.0),
}
# The result's bounds hold if they hold for every (data) operand.
_KEEPING = frozenset(("amax", "amin", "maximum", "minimum", "concat", "mean", "clamp", "cast"))
_MOVING = frozenset(("reshape", "permute", "expand", "slice", "flip", "gather", "take"))
_SMALL = ValueDomain(0.0, 1.0, finite=True)  # integers that may end up as positions somewhere
_POSITIVE = ValueDomain(low=1.0)
_VARIANCE = ValueDomain(low=0.5)  # near zero each layer would magnify roundings by hundreds
_INDEXING = (OpKind.INDEXED, OpKind.FRAMEWORK)
_KEEPS_SIGN = frozenset(("add", "mul", "div", "sum", "prod", "reciprocal", "matmul"))


def value_domains(graph: Graph) -> tuple[ValueDomain, ...]:
    """One domain per value of `graph`."""
    found = [FREE] * len(graph.values)
    indexes = any(spec(node.op).kind in _INDEXING for node in graph.nodes)
    for given in graph.inputs:
        found[given.value] = _input_domain(graph, given, indexes)
    for constant in graph.constants:
        found[constant.value] = _constant_domain(graph, constant)
    for value in _divisors(graph):
        if found[value] in (FREE, _SMALL):
            found[value] = _POSITIVE
    for value in _variances(graph):
        if found[value] == FREE:
            found[value] = _VARIANCE
    for value, extent in _index_extents(graph).items():
        found[value] = _inside(found[value], extent)
    for node in graph.nodes:
        domain = _node_domain(graph, node, [found[value] for value in node.inputs])
        for value in node.outputs:
            if found[value] == FREE:
                found[value] = domain
    return tuple(found)


def _input_domain(graph: Graph, given: Input, indexes: bool) -> ValueDomain:
    """The input's domain; integers of unknown meaning stay small where the program `indexes`."""
    if given.domain != FREE or not graph.type_of(given.value).dtype.is_integer:
        return given.domain
    return _SMALL if indexes else FREE


def _constant_domain(graph: Graph, constant: Constant) -> ValueDomain:
    array = constant_array(constant, graph.type_of(constant.value)).astype(float)
    if array.size == 0 or array.min() != array.min():
        return FREE
    return ValueDomain(float(array.min()), float(array.max()))


def _index_extents(graph: Graph) -> dict[int, int]:
    """Values used as positions, with the extent of what they address, back to their inputs."""
    found: dict[int, int] = {}
    for node in reversed(graph.nodes):
        if spec(node.op).kind is OpKind.INDEXED:
            dim, extents = node.attr("dim"), graph.type_of(node.inputs[0]).shape
            extent = extents[dim] if isinstance(dim, int) else None
            if isinstance(extent, int):
                index = node.inputs[1]
                found[index] = min(extent, found.get(index, extent))
        for index, extent in bag_positions(graph, node):
            if isinstance(extent, int):
                found[index] = min(extent, found.get(index, extent))
        if node.op in (*_MOVING, "cast") and len(node.outputs) == 1 and node.output in found:
            found.setdefault(node.inputs[0], found[node.output])
    return found


def _divisors(graph: Graph) -> set[int]:
    """Values that integers are divided by, back to their inputs: eager raises where one is zero."""
    found: set[int] = set()
    for node in reversed(graph.nodes):
        is_integer = graph.type_of(node.outputs[0]).dtype.is_integer
        if node.op in ("floor_div", "remainder", "fmod") and is_integer:
            found.add(node.inputs[1])
        if node.op in (*_MOVING, "cast") and found.intersection(node.outputs):
            found.add(node.inputs[0])
    return found


def _variances(graph: Graph) -> set[int]:
    """Values that a norm divides by the root of, back to their inputs: of one below zero it makes
    NaN, and behind NaN no check sees a fault. Of what else there are roots, weights only."""
    weights = {given.value for given in graph.inputs if given.kind is not InputKind.USER}
    numbers = {constant.value for constant in graph.constants}
    numbers |= {node.output for node in graph.nodes if node.op == "full"}
    norms: set[int] = set()
    roots: set[int] = set()
    for node in reversed(graph.nodes):
        if node.op == "batch_norm":
            norms.add(node.inputs[2])
        if node.op in ("sqrt", "rsqrt"):
            roots.add(node.inputs[0])
        passed = node.op in (*_MOVING, "cast", "add")
        rest = [value for value in node.inputs if value not in numbers]
        if passed and (len(rest) == 1 or node.op != "add"):
            for found in (norms, roots):
                if found.intersection(node.outputs):
                    found.add(rest[0])
    return norms | (roots & weights)


def _inside(domain: ValueDomain, extent: int) -> ValueDomain:
    bounded = domain.low is not None and domain.high is not None
    if bounded and domain != _SMALL:
        return domain
    return ValueDomain(0.0, float(max(extent - 1, 0)), finite=True)


def _node_domain(graph: Graph, node: Node, domains: Sequence[ValueDomain]) -> ValueDomain:
    if node.op in _FIXED:
        return _FIXED[node.op]
    if node.op in _MOVING:
        return domains[0]
    if node.op in _KEEPING and domains:
        return ValueDomain(_bound(domains, "low", min), _bound(domains, "high", max))
    if node.op == "mul" and node.inputs[0] == node.inputs[1]:
        return _NOT_NEGATIVE
    if node.op in _KEEPS_SIGN and all(d.low is not None and d.low >= 0 for d in domains):
        return _NOT_NEGATIVE
    if node.op in ("argmax", "argmin") and graph.type_of(node.inputs[0]).is_static:
        return ValueDomain(0.0, float(max(graph.type_of(node.inputs[0]).elems - 1, 0)), True)
    return FREE


def _bound(
    domains: Sequence[ValueDomain], side: str, choose: Callable[[list[float]], float]
) -> float | None:
    bounds = [getattr(domain, side) for domain in domains]
    return None if None in bounds else choose(bounds)
