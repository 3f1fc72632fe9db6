"""Results of an exported program: fresh tensors, inputs themselves, views of them, constants."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import ConstantArgument, OutputKind, TensorArgument

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.captured import (
    ConstantResult,
    FreshResult,
    InputView,
    Mutation,
    ResultLeaf,
    SameInput,
)
from kernel_gen.frontend.lower.core import Val
from kernel_gen.frontend.reading import Reading
from kernel_gen.frontend.symbols import is_dense
from kernel_gen.ir.types import TensorType

_WRITES = {
    kind
    for name in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION")
    if (kind := getattr(OutputKind, name, None)) is not None
}


class _Outputs:
    """Adds the outputs to the graph and remembers which storage belongs to which input."""

    def __init__(self, state: Reading) -> None:
        self.state = state
        self.nodes = {node.name: node for node in state.program.graph.nodes}
        self.owner: dict[int, int] = {}  # storage -> graph input
        self.written: dict[str, int] = {}  # node whose value an input has afterwards -> input
        self.made: dict[int, tuple[object, int]] = {}  # value -> (storage, position of the output)
        self.count = 0
        for name, position in state.input_of.items():
            self.owner[_storage(self.nodes[name])] = position

    def mutation(self, spec: Any) -> Mutation:
        """The value that an input has when the program ends."""
        node = self.nodes[spec.arg.name]
        target = self._target(spec)
        self.owner[_storage(node)] = target
        self.written[node.name] = target
        value = self.state.tensor(node)
        if value.id in self._input_values():
            value = self._copy(value)
        self.state.builder.output(value.id, mutates=target)
        self.count += 1
        return Mutation(self.count - 1, target)

    def _target(self, spec: Any) -> int:
        if spec.target in self.state.input_of:
            return self.state.input_of[spec.target]
        for input_spec in self.state.program.graph_signature.input_specs:
            if input_spec.target == spec.target:
                return self.state.input_of[input_spec.arg.name]
        raise UnsupportedModel(f"the program writes to {spec.target}, which is not an input")

    def result(self, argument: Any) -> ResultLeaf:
        """One leaf of the model's result."""
        if isinstance(argument, ConstantArgument):
            return ConstantResult(argument.value)
        if not isinstance(argument, TensorArgument):
            raise UnsupportedModel(
                f"the model returns {argument.name}, a number that depends on shapes or data; "
                "return a tensor, or leave the model eager"
            )
        node = self.nodes[argument.name]
        value = self.state.tensor(node)
        if argument.name in self.written:
            return self._same(value, self.written[argument.name])
        if argument.name in self.state.input_of:
            return self._same(value, self.state.input_of[argument.name])
        owner = self.owner.get(_storage(node))
        return self._fresh(node, value) if owner is None else self._view(node, value, owner)

    def _same(self, value: Val, owner: int) -> ResultLeaf:
        self._add(value, alias_of=owner)
        return SameInput(owner)

    def _view(self, node: fx.Node, value: Val, owner: int) -> ResultLeaf:
        fake = node.meta["val"]
        base = self.nodes[self._placeholder(owner)].meta["val"]
        numbers = (*fake.shape, *fake.stride(), fake.storage_offset(), base.storage_offset())
        if any(isinstance(number, torch.SymInt) for number in numbers):
            raise UnsupportedModel(
                "the model returns a view of an input with symbolic extents; return a copy "
                "(.clone()), or capture with static shapes"
            )
        self._add(value, alias_of=owner)
        offset = fake.storage_offset() - base.storage_offset()
        return InputView(owner, tuple(fake.shape), tuple(fake.stride()), offset)

    def _placeholder(self, owner: int) -> str:
        return next(name for name, position in self.state.input_of.items() if position == owner)

    def _fresh(self, node: fx.Node, value: Val) -> ResultLeaf:
        """A result of its own; one tensor returned twice is one output."""
        storage = (_storage(node), _strides(node))
        known = self.made.get(value.id)
        if known is not None and known[0] == storage:
            return FreshResult(known[1])
        if known is not None or value.id in self._input_values():
            value = self._copy(value)
        self.made[value.id] = (storage, self.count)
        return FreshResult(self._add(value, strides=_strides(node)))

    def _add(
        self, value: Val, alias_of: int | None = None, strides: tuple[int, ...] | None = None
    ) -> int:
        if strides is not None and value.type.is_static:
            type = TensorType(value.dtype, value.shape, strides)
            if is_dense(type):
                self.state.strides[value.id] = strides
        self.state.builder.output(value.id, alias_of=alias_of)
        self.count += 1
        return self.count - 1

    def _copy(self, value: Val) -> Val:
        """The same elements under another value, so that the result gets its own storage."""
        lowering = self.state.lowering
        return lowering.op("reshape", value, shape=lowering.dims(value.shape))

    def _input_values(self) -> set[int]:
        """Values that no node makes: inputs and literals."""
        return {
            value.id
            for node, value in self.state.values.items()
            if isinstance(value, Val) and node.op == "placeholder"
        }


def _storage(node: fx.Node) -> int:
    """Identity of the storage that torch's tracing gave the node's tensor."""
    return int(node.meta["val"].untyped_storage()._cdata)


def _strides(node: fx.Node) -> tuple[int, ...] | None:
    """Strides of eager's result in elements, None where contiguous or symbolic."""
    fake = node.meta["val"]
    strides = fake.stride()
    if any(isinstance(stride, torch.SymInt) for stride in strides) or fake.is_contiguous():
        return None
    return tuple(int(stride) for stride in strides)


def read_outputs(state: Reading) -> tuple[tuple[ResultLeaf, ...], tuple[Mutation, ...]]:
    """Adds all outputs: what inputs become first, then the results in order."""
    outputs = _Outputs(state)
    specs = state.program.graph_signature.output_specs
    mutations = tuple(outputs.mutation(spec) for spec in specs if spec.kind in _WRITES)
    kept = [spec for spec in specs if spec.kind not in _WRITES]
    for spec in kept:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise UnsupportedModel(f"the exported program has an output of kind {spec.kind}")
    return tuple(outputs.result(spec.arg) for spec in kept), mutations
