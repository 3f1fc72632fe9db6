"""Nodes that hold graphs: the branch that is taken, and loops, round by round.

What decides (a condition, a number of rounds) must not depend on the data: such a program is the
nodes that are run, one after another. Any other one has no fixed set of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.onnx.values import Call, Items, Value, as_tensor
from kernel_gen.ir.verify import MAX_NODES

Run = Callable[[onnx.GraphProto, dict[str, Value]], list[Value]]
"""Runs a graph: what its inputs are, and its outputs."""


def branch(call: Call, run: Run) -> list[Value]:
    """`If`: the results of the branch that is taken."""
    taken = "then_branch" if bool(call.known(0, "condition").item()) else "else_branch"
    return run(call.attr(taken), {})


def loop(call: Call, run: Run) -> list[Value]:
    """`Loop`: the values that are carried through, then the stacked values of all rounds."""
    body: onnx.GraphProto = call.attr("body")
    carried = _carried(call, len(body.input) - 2)
    rounds, goes_on = _rounds(call), _condition(call, call.operands[1:2])
    if goes_on and _never_ends(body):
        check_inner_nodes(MAX_NODES + 1 if rounds is None else rounds * (len(body.node) + 1))
    stacked: list[list[torch.Tensor]] = [[] for _ in body.output[1 + len(carried) :]]
    count = 0
    while goes_on and (rounds is None or count < rounds):
        given: list[Value] = [np.asarray(count, np.int64), np.asarray(True), *carried]
        inputs = {item.name: value for item, value in zip(body.input, given, strict=True)}
        again, *results = run(body, inputs)
        carried, made = results[: len(carried)], results[len(carried) :]
        for kept, value in zip(stacked, made, strict=True):
            kept.append(_tensor(call, value))
        goes_on, count = _condition(call, (again,)), count + 1
    return [*carried, *(_stack(call, values) for values in stacked)]


def check_inner_nodes(count: int) -> None:
    """Raises UnsupportedModel if the graphs that nodes hold come to too many nodes."""
    if count > MAX_NODES:
        raise UnsupportedModel(
            f"the file's loops come to more than {MAX_NODES} nodes: "
            "load the model in PyTorch, or export it without its loops"
        )


def initial(graph: onnx.GraphProto) -> dict[str, Value]:
    """The values that a graph brings along."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}


def _carried(call: Call, count: int) -> list[Value]:
    found = [value for value in call.operands[2:] if value is not None]
    if len(found) != count or len(call.operands) != count + 2:
        raise call.refuse(f"it carries {count} values, of which {len(found)} are given")
    return found


def _rounds(call: Call) -> int | None:
    if not call.has(0):
        return None
    return int(_decided(call, call.operands[0]).item())


def _condition(call: Call, given: Sequence[Value | None]) -> bool:
    """Whether another round is due; a condition that is left out always holds."""
    if not given or given[0] is None:
        return True
    return bool(_decided(call, given[0]).item())


def _never_ends(body: onnx.GraphProto) -> bool:
    """Whether the condition comes out of each round as it went in."""
    copies = {n.output[0]: n.input[0] for n in body.node if n.op_type == "Identity"}
    name = body.output[0].name
    for _ in copies:
        name = copies.get(name, name)
    return bool(name == body.input[1].name)


def _decided(call: Call, value: Value | None) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise call.refuse(
            "how often it runs depends on the data, so that the program has no fixed set of nodes. "
            "Export the model without the loop, or load it in PyTorch"
        )
    return value


def _tensor(call: Call, value: Value) -> torch.Tensor:
    if isinstance(value, Items):
        raise call.refuse("it stacks sequences")
    return as_tensor(value) if isinstance(value, np.ndarray) else value


def _stack(call: Call, values: Sequence[torch.Tensor]) -> torch.Tensor:
    if not values:
        raise call.refuse("it stacks the results of no round at all")
    return torch.stack(list(values))
