"""What can be said of the values of a graph, told from the graph alone: it may come from a file.

exact   only ops that no back end rounds lead to it: the bits are the reference's
signed  of these, where a zero's sign is the reference's too (maximum(0.0, -0.0) leaves it open)
wild    of any size: only the relative error of single elements can be bounded
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.ops import OPS, OpKind
from tests.strategy_draft import WILD

_MOVES = (OpKind.VIEW, OpKind.JOIN, OpKind.INDEXED, OpKind.SELECT)
_KEEP_SIGN = frozenset(("neg", "abs", "copysign", "floor", "ceil", "round", "trunc", "fmod"))
_CHOOSE = frozenset(("maximum", "minimum", "amax", "amin", "relu", "sign", "max_pool", "topk"))
_NARROW = (DType.F16, DType.BF16)
_WIDENED = {(narrow, wide) for narrow in _NARROW for wide in (DType.F32, DType.F64)}
_WIDENED.add((DType.F32, DType.F64))


@dataclass(frozen=True, slots=True)
class Trait:
    exact: bool = True
    signed: bool = True
    wild: bool = False


def traits(graph: Graph) -> list[Trait]:
    """Of each value of the graph, by number."""
    found = [Trait()] * len(graph.values)
    for item in graph.inputs:
        found[item.value] = Trait(wild=item.name == WILD)
    for node in graph.nodes:
        operands = [found[value] for value in node.inputs]
        for value in node.outputs:
            found[value] = _result(graph, node, operands)
    return found


def _result(graph: Graph, node: Node, operands: list[Trait]) -> Trait:
    dtype = graph.type_of(node.outputs[0]).dtype
    if not dtype.is_float:
        return Trait()
    exact = all(trait.exact for trait in operands) and _is_exact(graph, node)
    signed = exact and all(trait.signed for trait in operands) and node.op not in _CHOOSE
    return Trait(exact, signed, any(trait.wild for trait in operands))


def _is_exact(graph: Graph, node: Node) -> bool:
    dtype = graph.type_of(node.output).dtype
    kind = OPS[node.op].kind
    if node.op == "cast":
        source = graph.type_of(node.inputs[0]).dtype
        return source is DType.BOOL or source is dtype or (source, dtype) in _WIDENED
    if node.op == "full" or (node.op == "pad" and dtype in _NARROW):
        # A float literal of a narrow type is not rounded to it.
        value = node.attr("value")
        return dtype not in _NARROW or value in (0.0, 0.5, 1.0, 2.0)
    if node.op == "fmod":  # of a narrow type too: computed on wider operands, the result fits
        return True
    return kind in _MOVES or node.op in _KEEP_SIGN or node.op in _CHOOSE
