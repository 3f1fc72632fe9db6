"""Results of an exported program: fresh tensors, inputs themselves, views of them, constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.export.graph_signature import ConstantArgument, OutputKind, TensorArgument

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.captured import (
    ConstantResult,
    FreshResult,
    InputView,
    Mutation,
    OutputView,
    ResultLeaf,
    SameInput,
)
from kernel_gen.frontend.layouts import ResultLayout, bases
from kernel_gen.frontend.lower.core import Pair, Val
from kernel_gen.frontend.reading import Reading
from kernel_gen.frontend.symbols import is_dense
from kernel_gen.ir.types import TensorType, contiguous_strides, static_shape

_WRITES = {
    kind
    for name in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION")
    if (kind := getattr(OutputKind, name, None)) is not None
}


def read_outputs(
    state: Reading, layouts: Sequence[ResultLayout | None]
) -> tuple[tuple[ResultLeaf, ...], tuple[Mutation, ...]]:
    """Adds all outputs: what inputs become first, then the results in order.

    `layouts` are those of the results, as the program was first exported.
    """
    outputs = _Outputs(state)
    specs = state.program.graph_signature.output_specs
    mutations = tuple(outputs.mutation(spec) for spec in specs if spec.kind in _WRITES)
    kept = [spec for spec in specs if spec.kind not in _WRITES]
    for spec in kept:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise UnsupportedModel(f"the exported program has an output of kind {spec.kind}")
    shown = bases(layouts)
    results = []
    for i, (spec, layout) in enumerate(zip(kept, layouts, strict=True)):
        base = shown.get(i)
        if base is None or layout is None:
            results.append(outputs.result(spec.arg, layout))
        else:
            results.append(outputs.view(kept[base].arg, layouts[base], layout))
    return tuple(results), mutations


class _Outputs:
    """Adds outputs to the graph and remembers which value is which output already."""

    def __init__(self, state: Reading) -> None:
        self.state = state
        self.nodes = {node.name: node for node in state.program.graph.nodes}
        self.made: dict[int, tuple[int, tuple[int, ...] | None, int]] = {}
        self.count = 0

    def mutation(self, spec: Any) -> Mutation:
        """The value that an input has when the program ends."""
        value = self.state.tensor(self.nodes[spec.arg.name])
        if value.id in self._given():
            value = self._copy(value)
        target = self._target(spec)
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

    def result(self, argument: Any, layout: ResultLayout | None) -> ResultLeaf:
        """One leaf of the model's result."""
        if isinstance(argument, ConstantArgument):
            return ConstantResult(argument.value)
        if not isinstance(argument, TensorArgument) or layout is None:
            raise UnsupportedModel(
                f"the model returns {argument.name}, a number that depends on shapes or data; "
                "return a tensor, or leave the model eager"
            )
        value = self.state.tensor(self.nodes[argument.name])
        if isinstance(value, Pair):
            raise UnsupportedModel(
                f"the model returns complex numbers ({argument.name}); return "
                "torch.view_as_real of them, or leave the model eager"
            )
        owner = None if layout.owner is None else self.state.input_of.get(layout.owner)
        if owner is None:
            return FreshResult(self._fresh(value, layout))
        self.state.builder.output(value.id, alias_of=owner)
        self.count += 1
        if layout.is_owner:
            return SameInput(owner)
        assert layout.shape is not None
        return InputView(owner, layout.shape, layout.steps, layout.offset)

    def view(self, argument: Any, base: ResultLayout | None, layout: ResultLayout) -> ResultLeaf:
        """A leaf that shows memory of the result `argument`, whose layout is `base`."""
        held = self.result(argument, base)
        assert isinstance(held, FreshResult)
        assert layout.shape is not None
        return OutputView(held.output, layout.shape, layout.steps, layout.offset)

    def _fresh(self, value: Val, layout: ResultLayout) -> int:
        """Position of an output with memory of its own; one tensor returned twice is one output."""
        known = self.made.get(value.id)
        if known is not None and known[:2] == (layout.storage, layout.strides):
            return known[2]
        if known is not None or value.id in self._given():
            value = self._copy(value)
        if layout.strides is not None and value.type.is_static:
            type = TensorType(value.dtype, value.shape, layout.strides)
            if is_dense(type) and _differ(type):
                self.state.strides[value.id] = layout.strides
        self.state.builder.output(value.id)
        self.made[value.id] = (layout.storage, layout.strides, self.count)
        self.count += 1
        return self.count - 1

    def _copy(self, value: Val) -> Val:
        """The same elements under another value, so that the result gets its own storage."""
        lowering = self.state.lowering
        return lowering.op("reshape", value, shape=lowering.dims(value.shape))

    def _given(self) -> set[int]:
        """Values that no node makes: inputs and literals."""
        return {
            value.id
            for node, value in self.state.values.items()
            if isinstance(value, Val) and node.op == "placeholder"
        }


def _differ(type: TensorType) -> bool:
    """Whether strides say more than row-major order."""
    return type.strides != contiguous_strides(static_shape(type.shape))
