"""`Captured`: a graph, and how a call's arguments and results map to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.graph import Graph, InputKind


@dataclass(frozen=True, slots=True)
class UserLeaf:
    """A tensor among the flattened (args, kwargs) of a call."""

    position: int


@dataclass(frozen=True, slots=True)
class ParameterName:
    """A parameter of the module by its qualified name."""

    name: str


@dataclass(frozen=True, slots=True)
class BufferName:
    """A buffer of the module by its qualified name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ConstantTensor:
    """A tensor that the program reads without being given it: an attribute, a closure."""

    name: str
    tensor: torch.Tensor


Binding = UserLeaf | ParameterName | BufferName | ConstantTensor


@dataclass(frozen=True, slots=True)
class FreshResult:
    """A result with storage of its own: position in `Graph.outputs`."""

    output: int


@dataclass(frozen=True, slots=True)
class SameInput:
    """The very tensor that was passed in: position in `Graph.inputs`."""

    input: int


@dataclass(frozen=True, slots=True)
class _View:
    """A view of the storage of another tensor: of the one at `position`. `offset` (elements) counts
    from that tensor's own first one."""

    position: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def of(self, base: torch.Tensor) -> torch.Tensor:
        return base.as_strided(self.shape, self.strides, base.storage_offset() + self.offset)


class InputView(_View):
    """Of an input's storage: `position` in `Graph.inputs`."""

    __slots__ = ()


class OutputView(_View):
    """Of another result's storage: `position` in `Graph.outputs`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class ConstantResult:
    """A result that is no tensor: None, a number, a string."""

    value: object


ResultLeaf = FreshResult | SameInput | InputView | OutputView | ConstantResult


@dataclass(frozen=True, slots=True)
class Mutation:
    """`Graph.outputs[output]` is to be copied into input number `input`."""

    output: int
    input: int


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """A captured program.

    `bindings[i]` says where `graph.inputs[i]` comes from. `leaves` describes the flattened
    (args, kwargs) of a call: True for a tensor of the program, otherwise the value (wrapped in a
    ConstantResult) that the program was captured with and that a call must repeat.
    """

    graph: Graph
    bindings: tuple[Binding, ...]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    leaves: tuple[bool | ConstantResult, ...]
    results: tuple[ResultLeaf, ...]
    mutations: tuple[Mutation, ...]
    is_plain: bool  # all arguments are positional tensors: nothing to flatten
    is_single: bool  # the result is one tensor: nothing to rebuild

    @property
    def user_inputs(self) -> tuple[int, ...]:
        """Positions in `graph.inputs` that come from the call, in order."""
        return tuple(i for i, b in enumerate(self.bindings) if isinstance(b, UserLeaf))

    def flatten(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
    ) -> list[torch.Tensor] | None:
        """The call's tensors for the graph's USER inputs, in order.

        None if the call has another structure than the captured one or other constants.
        """
        if self.is_plain and not kwargs and len(args) == len(self.leaves):
            return list(args) if all(isinstance(a, torch.Tensor) for a in args) else None
        leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs or {})))
        if spec != self.in_spec:
            reordered = self._reordered(args, kwargs)
            if reordered is None:
                return None
            leaves = reordered
        if not all(map(_fits, leaves, self.leaves)):
            return None
        return [leaves[b.position] for b in self.bindings if isinstance(b, UserLeaf)]

    def _reordered(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> list[Any] | None:
        """Leaves of a call that names its keyword arguments in another order."""
        names = self.in_spec.child(1).context if self.in_spec.num_children == 2 else None
        if not kwargs or not isinstance(names, list) or set(names) != set(kwargs):
            return None
        ordered = {name: kwargs[name] for name in names}
        leaves, spec = pytree.tree_flatten((tuple(args), ordered))
        return leaves if spec == self.in_spec else None

    def bind(self, model: object, user: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """All inputs of the graph: the call's tensors and the model's own, as they are now."""
        tensors = iter(user)
        return [
            next(tensors) if isinstance(b, UserLeaf) else bound_tensor(b, model)
            for b in self.bindings
        ]

    def constants(self, model: object) -> dict[int, torch.Tensor]:
        """Position in `graph.inputs` -> tensor, for all that does not come from the call."""
        return {
            i: bound_tensor(binding, model)
            for i, binding in enumerate(self.bindings)
            if not isinstance(binding, UserLeaf)
        }

    def rebuild(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Any:
        """The model's result from the graph's outputs, after writing what the model writes.

        `inputs` are all inputs of the graph. Outputs that share an input's storage are made from
        that input, whatever `outputs` holds for them.
        """
        if self.is_single and not self.mutations:
            return outputs[0]
        if self.mutations:
            with torch.no_grad():
                for mutation in self.mutations:
                    inputs[mutation.input].copy_(outputs[mutation.output])
        leaves = [_result(leaf, inputs, outputs) for leaf in self.results]
        return pytree.tree_unflatten(leaves, self.out_spec)


def constant_key(value: object) -> object:
    """Equal for numbers that a program cannot tell apart: zeros have signs, and NaN is NaN."""
    match value:
        case float():
            return float.hex(value)
        case complex():
            return (float.hex(value.real), float.hex(value.imag))
        case _:
            return value


def _fits(leaf: object, expected: bool | ConstantResult) -> bool:
    if isinstance(expected, ConstantResult):
        value = expected.value
        return type(leaf) is type(value) and bool(constant_key(leaf) == constant_key(value))
    return isinstance(leaf, torch.Tensor)


def _result(
    leaf: ResultLeaf, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> object:
    match leaf:
        case FreshResult(output):
            return outputs[output]
        case SameInput(position):
            return inputs[position]
        case InputView():
            return leaf.of(inputs[leaf.position])
        case OutputView():
            return leaf.of(outputs[leaf.position])
        case ConstantResult():
            return leaf.value


def bound_tensor(binding: Binding, model: object) -> torch.Tensor:
    """The tensor behind a binding other than a call's; raises InvalidInput if it is gone."""
    if isinstance(binding, ConstantTensor):
        return binding.tensor
    if isinstance(binding, UserLeaf):
        raise InvalidInput(f"argument {binding.position} comes with each call")
    found: object = model
    for part in binding.name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, torch.Tensor):
        raise InvalidInput(
            f"{type(model).__name__} has no tensor {binding.name!r}, which the captured program "
            "reads: capture it again"
        )
    return found


KIND_OF_BINDING: dict[type, InputKind] = {
    UserLeaf: InputKind.USER,
    ParameterName: InputKind.PARAMETER,
    BufferName: InputKind.BUFFER,
    ConstantTensor: InputKind.CONSTANT,
}
