"""What a run hands out: fresh tensors, views of inputs, and inputs written in place."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.aliases import view_path
from kernel_gen.runtime.layout import mutated_inputs, user_inputs
from kernel_gen.runtime.torch_glue_constants import Environment, RunNodes


class Results:
    """Turns the environment of a finished run into outputs, in the order eager would do it:
    copies of old values first, then the writes, then views, which see what was written."""

    def __init__(
        self, program: Graph, constants: dict[int, torch.Tensor], run_nodes: RunNodes
    ) -> None:
        self._program = program
        self._constants = constants
        self._run_nodes = run_nodes
        users = {value: i for i, value in enumerate(user_inputs(program))}
        self._user_position = [users.get(item.value) for item in program.inputs]
        self._paths = [view_path(program, output) for output in program.outputs]
        self._given = {*users, *constants}
        self._mutated = [
            i for i, item in enumerate(program.inputs) if item.value in mutated_inputs(program)
        ]

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
        given = {_storage(t) for t in (*inputs, *self._constants.values())}
        results: list[torch.Tensor | None] = [
            self._computed(number, env, given) for number in range(len(program.outputs))
        ]
        self._write(targets, results)
        for number, output in enumerate(program.outputs):
            if output.mutates is not None:
                results[number] = targets[output.mutates]
            elif self._paths[number] is not None:
                results[number] = self._view(number, inputs)
        return [tensor for tensor in results if tensor is not None]

    def _computed(self, number: int, env: Environment, given: set[int]) -> torch.Tensor | None:
        """The output's own tensor; a copy where it would share memory with what came in."""
        output = self._program.outputs[number]
        if output.mutates is None and self._paths[number] is not None:
            return None
        tensor = env[output.value]
        keeps = output.alias_of is not None and output.mutates is None
        return tensor.clone() if not keeps and _storage(tensor) in given else tensor

    def _write(
        self, targets: dict[int, torch.Tensor], results: Sequence[torch.Tensor | None]
    ) -> None:
        for output, tensor in zip(self._program.outputs, results, strict=True):
            if output.mutates is not None and tensor is not None:
                targets[output.mutates].copy_(tensor)

    def _view(self, number: int, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        output, path = self._program.outputs[number], self._paths[number]
        assert output.alias_of is not None
        tensor = self._input(output.alias_of, inputs)
        if not path:
            return tensor
        start = self._program.nodes[path[0]].inputs[0]
        env: dict[int, torch.Tensor] = {start: tensor}
        self._run_nodes(self._program, path, env)
        return env[output.value]

    def _input(self, position: int, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        user = self._user_position[position]
        return (
            self._constants[self._program.inputs[position].value] if user is None else inputs[user]
        )


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
