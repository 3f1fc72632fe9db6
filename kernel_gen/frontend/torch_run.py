"""Runs graphs by torch, node by node: the baseline of the search, and its framework segments.

`TorchProgram` is the whole program as eager would run it: the same functions in the same order,
views without copies, values freed after their last use.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache
from typing import Any

import torch

from kernel_gen.errors import InvalidInput
from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.frontend.torch_batch_norm import batch_norm_calls
from kernel_gen.frontend.torch_fused import library_call
from kernel_gen.frontend.torch_largest import largest_calls
from kernel_gen.frontend.torch_ops import call_for, call_in_place, call_with_numbers
from kernel_gen.ir.graph import Attr, Constant, Graph, Node
from kernel_gen.ir.types import Dim, Sym, TensorType, static_shape

Tensor = torch.Tensor
Call = Callable[..., Any]

_VIEWS = frozenset(("reshape", "permute", "expand", "slice"))
_KEEPS = _VIEWS | {"cast"}  # torch may give back the operand itself
_SPECIALISATIONS = 16  # programs kept for the sizes of a symbolic graph


def run(
    program: Graph,
    nodes: Iterable[int],
    env: dict[int, Tensor],
    in_place: Container[int] = frozenset(),
) -> None:
    """Runs nodes in the given order; reads and writes tensors in `env` by value. Results among
    `in_place` are written into their node's first operand.

    Shapes in attributes must be static. Raises InvalidGraph for a framework node whose operator
    is not allowed.
    """
    for index in nodes:
        node = program.nodes[index]
        writes = bool(node.outputs) and node.outputs[0] in in_place
        call = _cached_in_place(node) if writes else _cached_call(node)
        results = call(*[env[value] for value in node.inputs])
        if len(node.outputs) == 1 and isinstance(results, Tensor):
            env[node.outputs[0]] = results
        else:
            env.update(zip(node.outputs, results, strict=True))


@lru_cache(maxsize=4096)
def _cached_call(node: Node) -> Call:
    return call_for(node)


@lru_cache(maxsize=4096)
def _cached_in_place(node: Node) -> Call:
    return call_in_place(node)


def constant_tensor(constant: Constant, type: TensorType) -> Tensor:
    """The tensor that a constant of a graph holds."""
    data = bytearray(constant.data)  # torch wants writable memory
    shape = static_shape(type.shape)
    if not data:
        return torch.empty(shape, dtype=to_torch(type.dtype))
    return torch.frombuffer(data, dtype=to_torch(type.dtype)).reshape(shape)


class TorchProgram:
    """A graph as a function of its inputs' tensors (all of them, in order).

    Gives one tensor per output. An output that `mutates` an input is the new value, for the caller
    to copy; one with `alias_of` shares memory with that input; all others have memory of their own
    and the strides of their type.

    With `fused`, a graph that is one call of the library's runs as such; its weight must then be
    the same tensor, not written to, in all calls. `in_place` are values that are written into
    their node's first operand.
    """

    def __init__(
        self, program: Graph, *, fused: bool = False, in_place: Container[int] = frozenset()
    ) -> None:
        self.program = program
        self._in_place = in_place
        self._by_size: dict[tuple[int, ...], _Straight] = {}
        self._straight = (
            None if program.symbols else _Straight(program, fused=fused, in_place=in_place)
        )

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        if len(tensors) != len(self.program.inputs):
            raise InvalidInput(
                f"the program takes {len(self.program.inputs)} tensors, got {len(tensors)}"
            )
        straight = self._straight or self._for_sizes(tensors)
        with torch.no_grad():
            return straight(tensors)

    def _for_sizes(self, tensors: Sequence[Tensor]) -> _Straight:
        sizes = symbol_sizes(self.program, tensors)
        key = tuple(sizes.values())
        found = self._by_size.get(key)
        if found is None:
            if len(self._by_size) >= _SPECIALISATIONS:
                self._by_size.clear()
            static = specialise(self.program, sizes)
            found = self._by_size[key] = _Straight(static, in_place=self._in_place)
        return found


class _Straight:
    """A static program as a list of steps: (call, operands, results, values to free)."""

    def __init__(
        self, program: Graph, *, fused: bool = False, in_place: Container[int] = frozenset()
    ) -> None:
        self._slots: list[Tensor | None] = [None] * len(program.values)
        for constant in program.constants:
            type = program.type_of(constant.value)
            self._slots[constant.value] = constant_tensor(constant, type)
        self._inputs = [item.value for item in program.inputs]
        self._outputs = [item.value for item in program.outputs]
        call = library_call(program, range(len(program.nodes))) if fused else None
        self._steps = (
            _steps(program, in_place) if call is None else [(call, call.inputs, (call.output,), ())]
        )
        self._owned = [_owned(program, position) for position in range(len(program.outputs))]

    def __call__(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        env: list[Any] = self._slots.copy()
        for value, tensor in zip(self._inputs, tensors, strict=True):
            env[value] = tensor
        for call, operands, results, dead in self._steps:
            found = call(*[env[value] for value in operands])
            if len(results) == 1 and isinstance(found, Tensor):
                env[results[0]] = found
            else:
                for value, tensor in zip(results, found, strict=True):
                    env[value] = tensor
            for value in dead:
                env[value] = None
        outputs = [env[value] for value in self._outputs]
        return tuple(
            tensor if own is None else own(tensor)
            for tensor, own in zip(outputs, self._owned, strict=True)
        )


_Step = tuple[Call, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _steps(program: Graph, in_place: Container[int]) -> list[_Step]:
    numbers = _numbers(program)
    kept = {item.value for item in program.outputs}
    kept |= {item.value for item in program.inputs} | {c.value for c in program.constants}
    bare: list[tuple[Call, tuple[int, ...], tuple[int, ...]]] = []
    joint = [*batch_norm_calls(program), *largest_calls(program)]
    whole = {min(found.nodes): found for found in joint}
    inside = {position for found in whole.values() for position in found.nodes}
    for position, node in enumerate(program.nodes):
        if position in whole:
            bare.append((whole[position].call, whole[position].inputs, whole[position].outputs))
        if position in inside:
            continue
        known = {i: numbers[v] for i, v in enumerate(node.inputs) if v in numbers}
        call, positions = call_with_numbers(node, known)
        if node.outputs[:1] and node.outputs[0] in in_place:
            call, positions = call_in_place(node), tuple(range(len(node.inputs)))
        bare.append((call, tuple(node.inputs[i] for i in positions), node.outputs))
    read = {value for _, operands, _ in bare for value in operands} | kept
    used = [step for step in bare if not step[2] or any(value in read for value in step[2])]
    return _freeing(used, kept)


def _freeing(
    steps: Sequence[tuple[Call, tuple[int, ...], tuple[int, ...]]], kept: set[int]
) -> list[_Step]:
    """Adds to each step the values that nothing reads after it."""
    last = {v: i for i, step in enumerate(steps) for v in (*step[1], *step[2])}
    dead: dict[int, list[int]] = {}
    for value, i in last.items():
        if value not in kept:
            dead.setdefault(i, []).append(value)
    return [(*step, tuple(dead.get(i, ()))) for i, step in enumerate(steps)]


def _numbers(program: Graph) -> dict[int, float]:
    """0-d constants, which eager's calls take as Python numbers."""
    found: dict[int, float] = {}
    for node in program.nodes:
        if node.op == "full" and node.attr("shape") == ():
            value = node.attr("value")
            if isinstance(value, bool | int | float):
                found[node.output] = value
    return found


def _owned(program: Graph, position: int) -> Callable[[Tensor], Tensor] | None:
    """How an output gets memory of its own and its type's strides; None if it needs nothing."""
    output = program.outputs[position]
    if output.alias_of is not None:
        return None
    type = program.type_of(output.value)
    strides = type.element_strides
    shares = _may_share(program, position)

    def own(tensor: Tensor) -> Tensor:
        if not shares and (tensor.stride() == strides or _same_layout(tensor, strides)):
            return tensor
        return copy_with_strides(tensor, strides)

    return own


def copy_with_strides(tensor: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy on the CPU with these strides; of elements that share a place, in both, one is copied.

    Raises InvalidInput where `strides` repeat an element that `tensor` holds several of.
    """
    copy = torch.empty_strided(tuple(tensor.shape), strides, dtype=tensor.dtype, device="cpu")
    source, target = tensor, copy
    for dim, (extent, stride) in enumerate(zip(tensor.shape, strides, strict=True)):
        if extent > 1 and stride == 0:
            if tensor.stride(dim) != 0:
                raise InvalidInput(f"dimension {dim} of a tensor of strides {tensor.stride()} is "
                                   f"to be one element, repeated: strides {strides}")  # fmt: skip
            source, target = source.narrow(dim, 0, 1), target.narrow(dim, 0, 1)
    target.copy_(source)
    return copy


def _same_layout(tensor: Tensor, strides: tuple[int, ...]) -> bool:
    pairs = zip(tensor.shape, tensor.stride(), strides, strict=True)
    return tensor.numel() == 0 or all(n == 1 or have == want for n, have, want in pairs)


def _may_share(program: Graph, position: int) -> bool:
    """Whether torch's result may be memory of an input, a constant or an earlier output."""
    producers = program.producers()
    before = {_root(program, producers, o.value) for o in program.outputs[:position]}
    value = program.outputs[position].value
    root = _root(program, producers, value)
    if root not in producers:
        return True
    same_value = any(o.value == value for o in program.outputs[:position])
    return root in before and not same_value


def _root(program: Graph, producers: dict[int, int], value: int) -> int:
    """The value whose memory a chain of views shows."""
    while value in producers and program.nodes[producers[value]].op in _KEEPS:
        value = program.nodes[producers[value]].inputs[0]
    return value


def symbol_sizes(program: Graph, tensors: Sequence[Tensor]) -> dict[str, int]:
    """Values of the symbols in the inputs' shapes; raises InvalidInput if they disagree."""
    sizes: dict[str, int] = {}
    for item, tensor in zip(program.inputs, tensors, strict=True):
        for dim, extent in zip(program.type_of(item.value).shape, tensor.shape, strict=True):
            if isinstance(dim, Sym) and sizes.setdefault(dim.name, extent) != extent:
                raise InvalidInput(f"{dim.name} is both {sizes[dim.name]} and {extent}")
    ranges = {symbol.name: symbol for symbol in program.symbols}
    for name, extent in sizes.items():
        if not ranges[name].low <= extent <= ranges[name].high:
            raise InvalidInput(
                f"{name} is {extent}, outside {ranges[name].low} … {ranges[name].high}"
            )
    return {name: sizes[name] for name in sorted(sizes)}


def specialise(program: Graph, sizes: dict[str, int]) -> Graph:
    """The program with symbols replaced by numbers: f32[s0, 4] at s0 = 7 is f32[7, 4]."""

    def dim(extent: Dim) -> Dim:
        return sizes[extent.name] if isinstance(extent, Sym) else extent

    def attr(key: str, value: Attr) -> Attr:
        if key == "shape" and isinstance(value, tuple):
            return tuple(sizes[v] if isinstance(v, str) else v for v in value)
        return sizes[value] if key == "stop" and isinstance(value, str) else value

    return dataclasses.replace(
        program,
        values=tuple(
            dataclasses.replace(type, shape=tuple(dim(d) for d in type.shape))
            for type in program.values
        ),
        nodes=tuple(
            dataclasses.replace(node, attrs=tuple((k, attr(k, v)) for k, v in node.attrs))
            for node in program.nodes
        ),
        symbols=(),
    )
