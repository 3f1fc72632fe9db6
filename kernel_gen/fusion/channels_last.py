"""One layout for all images of a convolutional program: channels innermost.

Images (values of batch, channels and space) that convolutions, elementwise ops and poolings hand to
each other form a chain. If a chain links several convolutions, or one that reads windows of many
channels, its intermediate values are stored with channels innermost:

    x (N, C, H, W) of strides (C·H·W, H·W, W, 1)  ->  strides (H·W·C, 1, W·C, C)

Shapes, indices and the caller's own tensors stay; the first kernel of a chain reads the caller's
layout and the last one writes it. Where windows of many channels are read from the caller's tensor,
a copy of it comes first, as a view that a kernel may also read through:

    y = convolution(x, w)  ->  t = reshape(x) of the same shape, channels innermost
                               y = convolution(t, w)

Weights of depthwise convolutions follow, so that vectors run
along channels there, too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kernel_gen.fusion.region import constant_values
from kernel_gen.fusion.rewrite import Edit
from kernel_gen.ir.call import shape_attr
from kernel_gen.ir.expand_activation import ACTIVATIONS
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.types import TensorType, contiguous_strides, static_shape
from kernel_gen.ir.verify import verify

_KEEPING = frozenset(("batch_norm", "mean", "max_pool", "avg_pool", "pad", "concat", "slice"))
_ACTIVATIONS = frozenset(ACTIVATIONS)
_MANY = 16  # channels: a run of fewer is short for a kernel that points at windows


def channels_last(given: Graph, convolutions: Collection[int]) -> Graph:
    """The program with the chains of its `convolutions`, by position, laid out anew; the program
    itself where there is nothing to change."""
    program = _with_copies(given, convolutions)
    constants = constant_values(program)
    fixed = {item.value for item in program.inputs} | {item.value for item in program.outputs}
    values = list(program.values)
    chosen = {given.nodes[position].output for position in convolutions}
    for chain in _chains(program, chosen, constants):
        for value in chain - fixed - constants:
            values[value] = innermost(program.type_of(value), 1)
        for node in program.nodes:
            if node.op == "convolution" and node.output in chain and _is_depthwise(program, node):
                weight = node.inputs[1]
                if weight in constants - fixed:
                    values[weight] = innermost(program.type_of(weight), 0)
    if tuple(values) == program.values:
        return program
    changed = replace(program, values=tuple(values))
    verify(changed)
    return changed


def _chains(
    program: Graph, chosen: Collection[int], constants: frozenset[int]
) -> list[frozenset[int]]:
    """Images linked by ops that keep dimensions in place, where these hold two convolutions of the
    results `chosen`, or one that reads windows of many channels."""
    link = _Links()
    count: dict[int, int] = {}
    for node in program.nodes:
        result = program.type_of(node.outputs[0]) if node.outputs else None
        if result is None or not _is_image(result) or not _keeps_dims(node):
            continue
        for value in node.inputs:
            if value not in constants and program.type_of(value).rank == result.rank:
                link.join(value, node.output)
    for node in program.nodes:
        if node.outputs and node.outputs[0] in chosen:
            root = link.find(node.output)
            count[root] = count.get(root, 0) + (2 if _reads_many(program, node) else 1)
    chains: dict[int, set[int]] = {root: set() for root, found in count.items() if found > 1}
    for value in link.known():
        if link.find(value) in chains:
            chains[link.find(value)].add(value)
    return [frozenset(chain) for chain in chains.values()]


def _with_copies(program: Graph, convolutions: Collection[int]) -> Graph:
    """The program with a copy of each input of the caller's that is read in windows of many
    channels, channels first."""
    callers = {item.value for item in program.inputs} - constant_values(program)
    edit = Edit(program)
    copies: dict[int, int] = {}
    for position in sorted(convolutions):
        node = program.nodes[position]
        source, type_ = node.inputs[0], program.type_of(node.inputs[0])
        if source not in callers or not _reads_many(program, node) or _is_innermost(type_):
            continue
        if source not in copies:
            shape = shape_attr(static_shape(type_.shape))
            copies[source] = edit.make(position, "reshape", (source,), node.name, shape=shape)
            edit.values[copies[source]] = innermost(type_, 1)
        edit.drop(position)
        edit.op(position, replace(node, inputs=(copies[source], *node.inputs[1:])))
    return edit.finish() if copies else program


def _reads_many(program: Graph, node: Node) -> bool:
    """Whether a convolution reads windows of more than one position over many channels."""
    type_, weight = program.type_of(node.inputs[0]), program.type_of(node.inputs[1])
    if not (type_.is_static and weight.is_static) or node.attr("groups") != 1:
        return False
    _, channels, *kernel = static_shape(weight.shape)
    return channels >= _MANY and any(extent != 1 for extent in kernel)


def _is_innermost(type_: TensorType) -> bool:
    return type_.element_strides[1] == 1


def _is_image(type_: TensorType) -> bool:
    return 3 <= type_.rank <= 5 and type_.is_static


def _keeps_dims(node: Node) -> bool:
    """Whether the op's operands and result are images of the same dimensions."""
    if node.op in _KEEPING or node.op in _ACTIVATIONS or node.op == "convolution":
        return node.op != "mean" or bool(node.attr("keepdim"))
    op = spec(node.op)
    return op.is_elementwise or op.kind is OpKind.CAST


class _Links:
    """Union-find over values."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def find(self, value: int) -> int:
        parent = self._parent.setdefault(value, value)
        if parent == value:
            return value
        self._parent[value] = self.find(parent)
        return self._parent[value]

    def join(self, first: int, second: int) -> None:
        self._parent[self.find(first)] = self.find(second)

    def known(self) -> list[int]:
        return sorted(self._parent)


def _is_depthwise(program: Graph, node: Node) -> bool:
    return node.attr("groups") != 1 and program.type_of(node.inputs[1]).shape[1] == 1


def innermost(type_: TensorType, dim: int) -> TensorType:
    """The type with dimension `dim` innermost, the others in order: (N, C, H, W) and 1 give strides
    (H·W·C, 1, W·C, C). The type must be static."""
    shape = static_shape(type_.shape)
    order = [*(d for d in range(type_.rank) if d != dim), dim]
    strides = contiguous_strides(shape[d] for d in order)
    placed = dict(zip(order, strides, strict=True))
    return replace(type_, strides=tuple(placed[d] for d in range(type_.rank)))
