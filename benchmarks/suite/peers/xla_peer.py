"""XLA through jax: the exported program, each ATen op as the jax.numpy expression that means the
same (`jnp_ops`), compiled as one jitted function.

Weights are arguments, as jax programs take them; what depends on weights alone (transposes above
all) is computed once, as a jax program would hold it. Inputs that the program writes are given up
at each call (donated), and the next call gets what came back: jax's way of updating in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import Tensor

from benchmarks.suite.peers.jnp_ops import OPS
from benchmarks.suite.peers.work import Built, Work, exported, tensors_of


def build(work: Work) -> Built:
    jax.config.update("jax_enable_x64", True)  # 64-bit inputs stay what they are
    program = _decomposed(work)
    _check_ops(program.graph)
    held = _folded(program)
    names = _needed(program.graph, held)
    function = jax.jit(
        _function(program, names, frozenset(held)), donate_argnums=_donated(work, len(names))
    )
    weights = [held[name] for name in names]
    del held
    state = [to_jax(tensor) for tensor in tensors_of(work)]
    last = len(work.mutated)

    def run() -> Sequence[Any]:
        outputs: Sequence[Any] = jax.block_until_ready(function(*weights, *state))
        if last:
            for position, value in zip(work.mutated, outputs[-last:], strict=True):
                state[position] = value
        return outputs

    return Built(run, lambda outputs: [to_torch(value) for value in outputs])


def _donated(work: Work, weights: int) -> tuple[int, ...]:
    return tuple(weights + position for position in work.mutated)


def _decomposed(work: Work) -> torch.export.ExportedProgram:
    table = torch.export.default_decompositions()
    # Attention stays whole: its decomposition fails on some programs.
    table.pop(torch.ops.aten.scaled_dot_product_attention.default, None)  # type: ignore[no-untyped-call]
    program: torch.export.ExportedProgram = exported(work).run_decompositions(table)
    return program


def _weights(program: torch.export.ExportedProgram) -> dict[str, Tensor]:
    """Parameters, buffers and constants by the name of their placeholder."""
    signature = program.graph_signature
    held: dict[str, Tensor] = {}
    for name, target in signature.inputs_to_parameters.items():
        held[name] = program.state_dict[target]
    for name, target in signature.inputs_to_buffers.items():
        found = program.state_dict.get(target)
        held[name] = program.constants[target] if found is None else found
    for name, target in signature.inputs_to_lifted_tensor_constants.items():
        held[name] = program.constants[target]
    return held


def _check_ops(graph: torch.fx.Graph) -> None:
    called = {str(node.target) for node in graph.nodes if node.op == "call_function"}
    if unknown := sorted(called - set(OPS)):
        raise NotImplementedError(f"no jax.numpy form of {', '.join(unknown)}")


def _folded(program: torch.export.ExportedProgram) -> dict[str, Any]:
    """Weights, and all values that depend on nothing else, by the name of their node."""
    values = {name: to_jax(tensor) for name, tensor in _weights(program).items()}
    for node in program.graph.nodes:
        used = node.all_input_nodes
        if node.op == "call_function" and used and all(n.name in values for n in used):
            values[node.name] = _call(node, values)
    return values


def _needed(graph: torch.fx.Graph, held: Mapping[str, Any]) -> list[str]:
    """Of the values in `held`, those that the rest of the program reads."""
    used = {n.name for node in graph.nodes if node.name not in held for n in node.all_input_nodes}
    return [name for name in held if name in used]


def _function(
    program: torch.export.ExportedProgram, names: Sequence[str], folded: frozenset[str]
) -> Callable[..., tuple[Any, ...]]:
    """What is left of the program over arrays: those called `names`, then its inputs."""
    todo = [n for n in program.graph.nodes if n.op == "call_function" and n.name not in folded]
    given = [*names, *program.graph_signature.user_inputs]
    (output,) = (node for node in program.graph.nodes if node.op == "output")

    def run(*arrays: Any) -> tuple[Any, ...]:
        values = dict(zip(given, arrays, strict=True))
        for node in todo:
            values[node.name] = _call(node, values)
        return tuple(values[argument.name] for argument in output.args[0])

    return run


def _call(node: torch.fx.Node, values: Mapping[str, Any]) -> Any:
    args = torch.fx.map_arg(node.args, lambda n: values[n.name])
    kwargs = torch.fx.map_arg(node.kwargs, lambda n: values[n.name])
    return OPS[str(node.target)](*args, **kwargs)


def to_jax(tensor: Tensor) -> Any:
    """A copy as a jax array of the same dtype."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return jnp.asarray(tensor.view(torch.int16).numpy().view(jnp.bfloat16))
    return jnp.array(tensor.numpy(), copy=True)


def to_torch(value: Any) -> Tensor:
    """A copy as a tensor of the same dtype."""
    array = np.array(value)
    if array.dtype == jnp.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
