"""Rewrites of a program that a rule asks for. Values keep their numbers, new ones are appended."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kernel_gen.fusion.region import constant_values
from kernel_gen.ir.expand import expand
from kernel_gen.ir.graph import Attr, Constant, Graph, Node, attrs
from kernel_gen.ir.infer import infer
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.types import TensorType
from kernel_gen.ir.verify import verify


class Edit:
    """A program under change: each old node may stand for several new ones."""

    def __init__(self, program: Graph) -> None:
        self._program = program
        self.values = list(program.values)
        self.constants = list(program.constants)
        self._nodes: dict[int, list[Node]] = {i: [n] for i, n in enumerate(program.nodes)}
        self._free: list[int] = []

    def value(self, type_: TensorType) -> int:
        """A new value, of a free number if there is one."""
        if self._free:
            number = self._free.pop()
            self.values[number] = type_
            return number
        self.values.append(type_)
        return len(self.values) - 1

    def free(self, value: int) -> None:
        """Gives up a value that nothing makes or reads any more; a new one must take its number."""
        self._free.append(value)

    def op(self, position: int, node: Node) -> None:
        """Adds `node` at the place of the old node `position`."""
        self._nodes[position].append(node)

    def make(
        self, position: int, op: str, inputs: tuple[int, ...], name: str, **given: Attr
    ) -> int:
        """Adds a node of a typed op at `position` and gives its result."""
        types = [self.values[value] for value in inputs]
        result = self.value(infer(op, types, attrs(**given)))
        self.op(position, Node(op, inputs, (result,), attrs(**given), name))
        return result

    def drop(self, position: int) -> None:
        """Takes the old node at `position` away; something else must make its values."""
        self._nodes[position] = self._nodes[position][1:]

    def finish(self) -> Graph:
        """The new program, its nodes in topological order and else as before."""
        nodes = [node for i in sorted(self._nodes) for node in self._nodes[i]]
        ordered = tuple(nodes[i] for i in _sorted(nodes))
        program = replace(
            self._program,
            values=tuple(self.values),
            nodes=ordered,
            constants=tuple(self.constants),
        )
        verify(program)
        return program


def _sorted(nodes: Sequence[Node]) -> list[int]:
    """Stable topological order; framework nodes stay in their order among each other."""
    made_by = {value: i for i, node in enumerate(nodes) for value in node.outputs}
    before = [{made_by[v] for v in node.inputs if v in made_by} for node in nodes]
    effects = [i for i, node in enumerate(nodes) if spec(node.op).kind is OpKind.FRAMEWORK]
    for first, second in itertools.pairwise(effects):
        before[second].add(first)
    ready = [i for i, sources in enumerate(before) if not sources]
    order: list[int] = []
    while ready:
        current = heapq.heappop(ready)
        order.append(current)
        for i, sources in enumerate(before):
            if current in sources:
                sources.remove(current)
                if not sources:
                    heapq.heappush(ready, i)
    return order


def expand_nodes(program: Graph, positions: Collection[int]) -> Graph:
    """The composites at `positions` replaced by their primitives.

    y = silu(x)  ->  s = sigmoid(x); y = mul(x, s)
    """
    edit = Edit(program)
    for position in sorted(positions):
        node = program.nodes[position]
        body = expand(node, [program.type_of(value) for value in node.inputs])
        local = dict(zip((i.value for i in body.inputs), node.inputs, strict=True))
        local[body.outputs[0].value] = node.output
        for value, type_ in enumerate(body.values):
            if value not in local:
                local[value] = edit.value(type_)
        edit.constants += [Constant(local[c.value], c.data) for c in body.constants]
        edit.drop(position)
        for inner in body.nodes:
            inputs = tuple(local[value] for value in inner.inputs)
            outputs = tuple(local[value] for value in inner.outputs)
            edit.op(position, Node(inner.op, inputs, outputs, inner.attrs, node.name))
    return edit.finish() if positions else program


@dataclass(frozen=True, slots=True)
class _Product:
    """What must agree between matrix products that become one."""

    op: str
    lhs: int
    operands: int
    dtype: str


def mergeable(program: Graph, positions: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """Sets of at least two matrix products that read the same operand and constant weights."""
    constants = constant_values(program)
    found: dict[_Product, list[int]] = {}
    for position in sorted(positions):
        node = program.nodes[position]
        weights = node.inputs[1:]
        plain = node.op in ("linear", "matmul") and constants.issuperset(weights)
        if not plain or node.inputs[0] in constants or program.type_of(weights[0]).rank != 2:
            continue
        key = _Product(node.op, node.inputs[0], len(node.inputs), program.type_of(weights[0]).dtype)
        found.setdefault(key, []).append(position)
    return tuple(tuple(members) for members in found.values() if len(members) > 1)


def merge_products(program: Graph, sets: Sequence[tuple[int, ...]]) -> Graph:
    """Each set of equal-input products becomes one product with its weights joined.

    q = linear(x, wq); k = linear(x, wk)
    ->  w = concat(wq, wk); y = linear(x, w); q = slice(y); k = slice(y)

    The concat reads constants only, so it runs once, when a plan is bound; the slices are reads.
    """
    edit = Edit(program)
    for members in sets:
        _merge(edit, program, members)
    return edit.finish() if sets else program


def _merge(edit: Edit, program: Graph, members: tuple[int, ...]) -> None:
    nodes = [program.nodes[position] for position in members]
    first, name = members[0], "+".join(node.name for node in nodes if node.name)
    joined = [nodes[0].inputs[0]]
    for place in range(1, len(nodes[0].inputs)):
        parts = tuple(node.inputs[place] for node in nodes)
        dim = 1 if nodes[0].op == "matmul" else 0
        joined.append(edit.make(first, "concat", parts, name, dim=dim))
    merged = edit.make(first, nodes[0].op, tuple(joined), name)
    dim = edit.values[merged].rank - 1
    start = 0
    for position, node in zip(members, nodes, strict=True):
        extent = program.type_of(node.output).shape[dim]
        stop = start + (extent if isinstance(extent, int) else 0)
        given = attrs(dim=dim, start=start, stop=stop, step=1)
        edit.drop(position)
        edit.op(first, Node("slice", (merged,), (node.output,), given, node.name))
        start = stop
