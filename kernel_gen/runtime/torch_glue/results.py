"""What a run hands out: fresh tensors, views of inputs, and inputs written in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from kernel_gen.frontend.torch_run import run
from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.aliases import view_path
from kernel_gen.runtime.layout import mutated_inputs, user_inputs
from kernel_gen.runtime.torch_glue.constants import Environment, copy_in_layout, has_layout


class Results:
    """Turns the environment of a finished run into outputs, in the order eager would do it:
    copies of old values first, then the writes, then views, which see what was written."""

    def __init__(
        self, program: Graph, constants: dict[int, torch.Tensor], buffers: Iterable[int]
    ) -> None:
        """`buffers` are values in memory that only the run knows, or of the input they replace."""
        self._program = program
        self._constants = constants
        users = {value: i for i, value in enumerate(user_inputs(program))}
        self._user_position = [users.get(item.value) for item in program.inputs]
        self._paths = [view_path(program, output) for output in program.outputs]
        self._private = frozenset(buffers)
        self._bound_storages = {_storage(tensor) for tensor in constants.values()}
        self._given = {*users, *constants}
        written = mutated_inputs(program)
        self._mutated = [i for i, item in enumerate(program.inputs) if item.value in written]

    @property
    def all_fresh(self) -> bool:
        """Whether every output is a buffer of its own: nothing to copy, write or view."""
        outputs = self._program.outputs
        return (
            all(o.mutates is None and o.alias_of is None for o in outputs)
            and not any(o.value in self._given for o in outputs)
            and len({o.value for o in outputs}) == len(outputs)
        )

    def collect(self, inputs: Sequence[torch.Tensor], env: Environment) -> list[torch.Tensor]:
        """One tensor per output of the program."""
        program = self._program
        targets = {i: self._input(i, inputs) for i in self._mutated}
        results = self._computed(inputs, env)
        self._write(targets, results)
        for number, output in enumerate(program.outputs):
            if output.mutates is not None:
                results[number] = targets[output.mutates]
            elif self._paths[number] is not None:
                results[number] = self._view(number, inputs)
        return [tensor for tensor in results if tensor is not None]

    def _computed(
        self, inputs: Sequence[torch.Tensor], env: Environment
    ) -> list[torch.Tensor | None]:
        """The outputs' own tensors: copies where torch made views of what came in or of another
        output, or chose another layout than eager. None for views of inputs."""
        taken = {_storage(tensor) for tensor in inputs} | self._bound_storages
        found: list[torch.Tensor | None] = []
        own: dict[int, torch.Tensor] = {}  # value -> tensor: one value twice is one tensor
        for output, path in zip(self._program.outputs, self._paths, strict=True):
            value, is_result = output.value, output.mutates is None
            if is_result and path is not None:
                found.append(None)
            elif value in self._private or (is_result and output.alias_of is not None):
                found.append(env[value])
            else:
                if value not in own:
                    own[value] = self._owned(value, env[value], taken)
                    taken.add(_storage(own[value]))
                found.append(own[value])
        return found

    def _owned(self, value: int, tensor: torch.Tensor, taken: set[int]) -> torch.Tensor:
        type_ = self._program.type_of(value)
        if has_layout(tensor, type_) and _storage(tensor) not in taken:
            return tensor
        return copy_in_layout(tensor, type_)

    def _write(
        self, targets: dict[int, torch.Tensor], results: Sequence[torch.Tensor | None]
    ) -> None:
        for output, tensor in zip(self._program.outputs, results, strict=True):
            if output.mutates is None or tensor is None:
                continue
            if tensor is not targets[output.mutates]:  # else a kernel has written it
                targets[output.mutates].copy_(tensor)

    def _view(self, number: int, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        output, path = self._program.outputs[number], self._paths[number]
        assert output.alias_of is not None
        tensor = self._input(output.alias_of, inputs)
        if not path:
            return tensor
        start = self._program.nodes[path[0]].inputs[0]
        env: dict[int, torch.Tensor] = {start: tensor}
        run(self._program, path, env)
        return env[output.value]

    def _input(self, position: int, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        user = self._user_position[position]
        return (
            self._constants[self._program.inputs[position].value] if user is None else inputs[user]
        )


def mark_written(tensor: torch.Tensor) -> None:
    """Lets torch know that a kernel has written the tensor, as an op in place would."""
    if not tensor.is_inference():
        torch.autograd.graph.increment_version(tensor)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
