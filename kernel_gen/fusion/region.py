"""A group as primitives: its nodes with composites expanded in place, and what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernel_gen.fusion.group import FusionGroup
from kernel_gen.fusion.views import RefusedError
from kernel_gen.ir.arrays import constant_array
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.expand import expand
from kernel_gen.ir.graph import Constant, Graph, InputKind, Node
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.types import TensorType

Scalar = bool | int | float
MAX_PRIMITIVES = 400
MAX_DEPTH = 120  # primitives on one path: values are pulled recursively, a few frames each


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive of a region. `explicit` marks nodes of the program itself: their casts round."""

    node: Node
    explicit: bool


class Region:
    """Primitives of one group over local value numbers; values 0 … n-1 are those of the program."""

    def __init__(self, program: Graph, group: FusionGroup, scalars: dict[int, Scalar]) -> None:
        self.types: list[TensorType] = list(program.values)
        self.producers: dict[int, Primitive] = {}
        self.scalars = dict(scalars)
        self._depth: dict[int, int] = {}
        for position in group.nodes:
            self._add(program.nodes[position], explicit=True)
        if len(self.producers) > MAX_PRIMITIVES:
            raise RefusedError(
                "group-too-large", f"{len(self.producers)} primitives, limit {MAX_PRIMITIVES}"
            )

    def _add(self, node: Node, *, explicit: bool) -> None:
        kind = spec(node.op).kind
        if kind is OpKind.FRAMEWORK:
            raise RefusedError("framework-op", f"{node.op} {node.name} is run by the framework")
        if kind is OpKind.COMPOSITE:
            self._inline(node)
        else:
            depth = 1 + max((self._depth.get(value, 0) for value in node.inputs), default=0)
            if depth > MAX_DEPTH:
                raise RefusedError("group-too-large", f"a path of more than {MAX_DEPTH} primitives")
            self._depth[node.output] = depth
            self.producers[node.output] = Primitive(node, explicit)

    def _inline(self, node: Node) -> None:
        kinds = tuple(_plain(self.types[value]) for value in node.inputs)
        body = _expansion(_alone(node), kinds)
        local = dict(zip((i.value for i in body.inputs), node.inputs, strict=True))
        local.update((output.value, node.output) for output in body.outputs)
        for value, type_ in enumerate(body.values):
            if value not in local:
                local[value] = len(self.types)
                self.types.append(type_)
        for constant in body.constants:
            self.scalars[local[constant.value]] = scalar_of(constant, body.type_of(constant.value))
        for inner in body.nodes:
            self._add(_renumbered(inner, local), explicit=False)


def _renumbered(node: Node, local: dict[int, int]) -> Node:
    inputs = tuple(local[value] for value in node.inputs)
    outputs = tuple(local[value] for value in node.outputs)
    return Node(node.op, inputs, outputs, node.attrs, node.name)


def _plain(type_: TensorType) -> TensorType:
    return TensorType(type_.dtype, type_.shape)


def _alone(node: Node) -> Node:
    """The node as if it were the first of a program: equal layers have equal ones."""
    return Node(node.op, tuple(range(len(node.inputs))), (len(node.inputs),), node.attrs)


@lru_cache(maxsize=4096)  # pure; equal layers expand once
def _expansion(node: Node, operands: tuple[TensorType, ...]) -> Graph:
    return expand(node, operands)


def scalar_of(constant: Constant, type_: TensorType) -> Scalar:
    """The value of a constant of one element."""
    value = constant_array(constant, type_).reshape(-1)[0]
    if type_.dtype is DType.BOOL:
        return bool(value)
    return float(value) if type_.dtype.is_float else int(value)


def scalar_constants(program: Graph) -> dict[int, Scalar]:
    """Constants of one element by value: they stand in the code of a kernel."""
    found = {}
    for constant in program.constants:
        type_ = program.type_of(constant.value)
        if type_.elems == 1:
            found[constant.value] = scalar_of(constant, type_)
    return found


def constant_values(program: Graph) -> frozenset[int]:
    """Values that do not change between calls: parameters and buffers that the program does not
    write, constants, and what is computed from those alone (`constant_nodes`)."""
    written = {o.mutates for o in program.outputs}
    inputs = enumerate(program.inputs)
    known = {v.value for i, v in inputs if v.kind is not InputKind.USER and i not in written}
    known |= {constant.value for constant in program.constants}
    for node in program.nodes:
        if _is_constant(node, known):
            known |= set(node.outputs)
    return frozenset(known)


def constant_nodes(program: Graph) -> tuple[int, ...]:
    """Indices of the nodes that read only constants; they run once, when a plan is bound."""
    known = constant_values(program)
    return tuple(i for i, node in enumerate(program.nodes) if known.issuperset(node.outputs))


def _is_constant(node: Node, known: set[int]) -> bool:
    kind = spec(node.op).kind
    return kind is not OpKind.FRAMEWORK and known.issuperset(node.inputs)


def make_group(program: Graph, nodes: Sequence[int]) -> FusionGroup:
    """The group of `nodes`: reads what they do not make, writes what others or the caller need."""
    chosen = set(nodes)
    order = tuple(sorted(chosen))
    made = dict.fromkeys(value for i in order for value in program.nodes[i].outputs)
    inputs: dict[int, None] = {}
    for i in order:
        inputs.update(dict.fromkeys(v for v in program.nodes[i].inputs if v not in made))
    uses = _uses(_Itself(program))
    outputs = tuple(
        value
        for value in made
        if value in uses.returned or not chosen.issuperset(uses.readers.get(value, ()))
    )
    return FusionGroup(order, tuple(inputs), outputs)


@dataclass(frozen=True, slots=True)
class _Uses:
    """Who needs each value: nodes, or the caller."""

    readers: dict[int, tuple[int, ...]]
    returned: frozenset[int]


class _Itself:
    """A program as a key by identity: a digest of all of it for each group would be quadratic."""

    __slots__ = ("program",)

    def __init__(self, program: Graph) -> None:
        self.program = program

    def __hash__(self) -> int:
        return id(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.program is other.program


@lru_cache(maxsize=8)  # pure; all groups of a search are made of one program
def _uses(itself: _Itself) -> _Uses:
    program = itself.program
    return _Uses(program.consumers(), frozenset(output.value for output in program.outputs))
