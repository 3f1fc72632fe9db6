"""What may be fused: refusals with a code of `docs/reason-codes.md` and a sentence."""

from __future__ import annotations

from typing import Protocol

from kernel_gen.errors import Refusal
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.loopnest import Contract, LoopNest
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.target import Target

# Templates that take any nest, by plain loops.
_LAST_RESORT = frozenset({"loops"})
_NO_TEMPLATE = Refusal("no-template", "no template takes this group")
# Matrix products inside one node; a kernel holds one, or several of one left operand.
_WINDOWED = frozenset({"convolution", "conv_transpose", "conv_weight_gradient"})
_PRODUCTS = {"linear": 1, "matmul": 1, "attention": 2, **dict.fromkeys(_WINDOWED, 1)}


class Accepts(Protocol):
    """What legality needs of a template (`kernel_gen.codegen.template.Template`)."""

    @property
    def name(self) -> str: ...

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        """None if the template takes the nest."""


def described(node: Node) -> str:
    """`op` and name for sentences: `softmax softmax_3`."""
    return f"{node.op} {node.name}".strip()


def unfusable(node: Node) -> Refusal | None:
    """Why `node` can be in no generated kernel, or None."""
    kind = spec(node.op).kind
    if kind is OpKind.FRAMEWORK:
        code, sentence = node.attr("code"), node.attr("sentence")
        return Refusal(str(code or "framework-op"), str(sentence or "The framework runs this op."))
    return None


def matrix_products(node: Node) -> int:
    """Matrix products in the node's expansion."""
    return _PRODUCTS.get(node.op, 0)


def refuse_nodes(program: Graph, nodes: tuple[int, ...], limit: int) -> Refusal | None:
    """Why these nodes cannot share a kernel, judged before lowering; None if they might.

    `limit` is for the nodes that are not sources: these are made in each group anew.
    """
    chosen = [program.nodes[i] for i in nodes]
    counted = sum(spec(node.op).kind is not OpKind.SOURCE for node in chosen)
    if counted > limit:
        return Refusal("group-too-large", f"{counted} nodes, the limit is {limit}")
    for node in chosen:
        refusal = unfusable(node)
        if refusal is not None:
            return refusal
    heavy = [n for n in chosen if matrix_products(n) and not _is_depthwise(program, n)]
    several = sum(map(matrix_products, heavy)) > 1
    if several and not is_attention(chosen) and not _side_by_side(program, heavy):
        names = ", ".join(map(described, heavy))
        sentence = (
            f"{names}: a kernel holds one matrix product, several of equal shape and input,"
            " or an attention"
        )
        return Refusal("two-products", sentence)
    return _refuse_windows(program, chosen)


def _is_depthwise(program: Graph, node: Node) -> bool:
    """Whether each channel has a kernel of its own: a short sum per element, no product."""
    if node.op != "convolution" or node.attr("groups") == 1:
        return False
    return program.type_of(node.inputs[1]).shape[1] == 1


def _refuse_windows(program: Graph, chosen: list[Node]) -> Refusal | None:
    """A convolution reads each element in several windows; computing it is left to a kernel of its
    own, unless the kernel has one position only."""
    made = _made(chosen)
    for node in chosen:
        if node.op in _WINDOWED and made.intersection(_read_in_windows(program, node)):
            sentence = f"{described(node)}: its input would be computed once for each window"
            return Refusal("overlapping-windows", sentence)
    return None


def _read_in_windows(program: Graph, node: Node) -> tuple[int, ...]:
    """Operands of which each element is read for several elements of the result."""
    if node.op == "conv_weight_gradient":
        return node.inputs
    positions = program.type_of(node.inputs[1]).shape[2:]
    return node.inputs[:1] if any(extent != 1 for extent in positions) else ()


def _made(chosen: list[Node]) -> set[int]:
    """What the nodes, which stand in order, compute, and the views of that."""
    found: set[int] = set()
    for node in chosen:
        computes = spec(node.op).kind not in (OpKind.VIEW, OpKind.SOURCE)
        if computes or found.intersection(node.inputs):
            found.update(node.outputs)
    return found


def is_attention(nodes: list[Node]) -> bool:
    """Whether the only products are those of an attention node, or two with a softmax beside them:
    whether it stands between them, a template sees."""
    products = [node.op for node in nodes if matrix_products(node)]
    softmax = any(node.op in ("softmax", "amax") for node in nodes)
    return products == ["attention"] or (products == ["matmul"] * 2 and softmax)


def _side_by_side(program: Graph, products: list[Node]) -> bool:
    """Whether the products read the same left operand and give results of one shape: query, key
    and value, or the gate of a feed-forward layer and what it gates."""
    if any(matrix_products(node) != 1 or node.op in _WINDOWED for node in products):
        return False
    kinds = {(node.inputs[0], program.type_of(node.output).shape) for node in products}
    return len(kinds) == 1


def accepting(
    nest: LoopNest, target: Target, templates: tuple[Accepts, ...], *, fused: bool
) -> tuple[str, ...] | Refusal:
    """Names of the templates that take `nest`, or the best template's refusal where none does.

    A product that only a last resort takes is not worth fusing with anything (`fused`): its loops
    would run at a fraction of the library's speed.
    """
    refusal: Refusal | None = None
    names: list[str] = []
    for template in templates:
        answer = template.refuse(nest, target)
        if answer is None:
            names.append(template.name)
        elif refusal is None or template.name == "matmul":
            refusal = answer
    product = any(isinstance(statement, Contract) for statement in nest.statements)
    if product and fused and _LAST_RESORT.issuperset(names):
        names = []
    return tuple(names) if names else refusal or _NO_TEMPLATE
