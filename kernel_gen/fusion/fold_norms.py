"""Batch norms with fixed statistics become part of the weights before them.

    y = batch_norm(convolution(x, w, b), mean, var, g, h)
    ->  s = g · rsqrt(var + eps)
        y = convolution(x, w · s, h + (b - mean) · s)

What is computed here reads constants only: it runs once, when a plan is bound to its weights, and
again when one of them changes. A norm that follows no convolution is left with one product and one
sum per element.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kernel_gen.fusion.region import constant_values
from kernel_gen.fusion.rewrite import Edit
from kernel_gen.ir.call import shape_attr
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, Node


def fold_norms(program: Graph, positions: Collection[int]) -> Graph:
    """The batch norms at `positions` folded; the program itself where none can be."""
    constants = constant_values(program)
    found = [p for p in sorted(positions) if _has_fixed_statistics(program, p, constants)]
    if not found:
        return program
    edit = Edit(program)
    uses = _uses(program)
    for position in found:
        _fold(edit, program, position, _foldable(program, position, constants, uses))
    return edit.finish()


def holds_norm(program: Graph, position: int) -> bool:
    """Whether the convolution at `position` is one into which `fold_norms` has put a norm."""
    node = program.nodes[position]
    if node.op != "convolution":
        return False
    makers = program.producers()

    def made_by(value: int, *ops: str) -> int | None:
        maker = makers.get(value)
        return value if maker is not None and program.nodes[maker].op in ops else None

    if made_by(node.inputs[1], "mul") is None:
        return False
    column = made_by(program.nodes[makers[node.inputs[1]]].inputs[1], "reshape")
    if column is None:
        return False
    scale = program.nodes[makers[column]].inputs[0]
    if made_by(scale, "mul") is not None:
        scale = program.nodes[makers[scale]].inputs[0]
    return made_by(scale, "rsqrt") is not None


def _has_fixed_statistics(program: Graph, position: int, constants: Collection[int]) -> bool:
    """Whether the norm is an affine map known at load. Narrow floats would round the weights."""
    node = program.nodes[position]
    types = [program.type_of(value) for value in node.inputs]
    wide = all(type_.dtype in (DType.F32, DType.F64) for type_ in types)
    same = len({type_.dtype for type_ in types}) == 1
    fixed = node.op == "batch_norm" and all(value in constants for value in node.inputs[1:])
    return fixed and wide and same and node.inputs[0] not in constants


def _uses(program: Graph) -> dict[int, int]:
    """How often each value is read, results included."""
    found: dict[int, int] = {}
    for node in program.nodes:
        for value in node.inputs:
            found[value] = found.get(value, 0) + 1
    for output in program.outputs:
        found[output.value] = found.get(output.value, 0) + 1
    return found


def _foldable(
    program: Graph, position: int, constants: Collection[int], uses: dict[int, int]
) -> int | None:
    """Position of the convolution that only this norm reads, its weights constant."""
    value = program.nodes[position].inputs[0]
    producer = program.producers().get(value)
    if producer is None or uses[value] > 1:
        return None
    node = program.nodes[producer]
    fixed = node.op == "convolution" and all(v in constants for v in node.inputs[1:])
    return producer if fixed else None


@dataclass(frozen=True, slots=True)
class _Affine:
    """Values of one element per channel."""

    scale: int
    shift: int


def _fold(edit: Edit, program: Graph, position: int, convolution: int | None) -> None:
    node = program.nodes[position]
    if convolution is None:
        _as_affine(edit, program, position)
        return
    before = program.nodes[convolution]
    edit.free(before.output)
    bias = before.inputs[2] if len(before.inputs) == 3 else None
    affine = _affine(edit, node, position, bias)
    weight = before.inputs[1]
    name = node.name
    column = _per_channel(edit, position, affine.scale, program.type_of(weight).rank, 0, name)
    scaled = edit.make(position, "mul", (weight, column), name)
    edit.drop(convolution)
    edit.drop(position)
    inputs = (before.inputs[0], scaled, affine.shift)
    folded = Node("convolution", inputs, node.outputs, before.attrs, before.name or name)
    edit.op(position, folded)


def _as_affine(edit: Edit, program: Graph, position: int) -> None:
    """y = x · s + t."""
    node = program.nodes[position]
    affine = _affine(edit, node, position, None)
    rank, name = program.type_of(node.inputs[0]).rank, node.name
    scale = _per_channel(edit, position, affine.scale, rank, 1, name)
    shift = _per_channel(edit, position, affine.shift, rank, 1, name)
    product = edit.make(position, "mul", (node.inputs[0], scale), name)
    edit.drop(position)
    edit.op(position, Node("add", (product, shift), node.outputs, (), name))


def _affine(edit: Edit, node: Node, position: int, bias: int | None) -> _Affine:
    """The norm as scale and shift of what stands before it, a bias of that included."""
    _, mean, variance, *parameters = node.inputs
    name, dtype = node.name, edit.values[mean].dtype
    eps = node.attr("eps")
    offset = edit.make(position, "full", (), name, shape=(), dtype=dtype.value, value=eps)
    spread = edit.make(position, "add", (variance, offset), name)
    scale = edit.make(position, "rsqrt", (spread,), name)
    if node.attr("weight"):
        scale = edit.make(position, "mul", (scale, parameters.pop(0)), name)
    if bias is not None:
        mean = edit.make(position, "sub", (mean, bias), name)
    moved = edit.make(position, "mul", (mean, scale), name)
    if parameters:
        return _Affine(scale, edit.make(position, "sub", (parameters[0], moved), name))
    return _Affine(scale, edit.make(position, "neg", (moved,), name))


def _per_channel(edit: Edit, position: int, value: int, rank: int, dim: int, name: str) -> int:
    """(C) as (…, C, …) of `rank` dimensions, C at `dim`."""
    (channels,) = edit.values[value].shape
    shape = tuple(channels if d == dim else 1 for d in range(rank))
    return edit.make(position, "reshape", (value,), name, shape=shape_attr(shape))
