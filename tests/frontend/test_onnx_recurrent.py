"""Recurrent layers of ONNX files, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.onnx import read_onnx

_STEPS, _BATCH, _FEATURES, _HIDDEN = 5, 3, 4, 6
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_RNG = np.random.default_rng(3)


def _file(op: str, steps: int = _STEPS, **attributes: Any) -> bytes:
    """One layer with weights, biases and a first state."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rows = _GATES[op] * _HIDDEN
    shapes = {
        "w": (directions, rows, _FEATURES),
        "r": (directions, rows, _HIDDEN),
        "b": (directions, 2 * rows),
        "h": (directions, _BATCH, _HIDDEN),
        "c": (directions, _BATCH, _HIDDEN),
    }
    names = ["w", "r", "b", "", "h", *(["c"] if op == "LSTM" else [])]
    held = [
        numpy_helper.from_array(_RNG.standard_normal(shapes[name]).astype(np.float32), name)
        for name in names
        if name
    ]
    results = ["y", "last", *(["cell"] if op == "LSTM" else [])]
    node = helper.make_node(op, ["x", *names], results, hidden_size=_HIDDEN, **attributes)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, _BATCH, _FEATURES])
    found = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, list("sdbh"[-rank:]))
        for name, rank in zip(results, (4, 3, 3), strict=False)
    ]
    graph = helper.make_graph([node], "g", [given], found, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("LSTM", {}),
        ("GRU", {"linear_before_reset": 1}),
        ("GRU", {}),
        ("RNN", {}),
        ("RNN", {"activations": ["Relu"]}),
    ],
    ids=["lstm", "gru", "gru that resets first", "rnn", "rnn of relu"],
)
def test_recurrent_layers(op: str, attributes: dict[str, Any], direction: str) -> None:
    if direction == "bidirectional" and "activations" in attributes:
        attributes = {"activations": ["Relu", "Relu"]}
    data = _file(op, direction=direction, **attributes)
    x = _RNG.standard_normal((_STEPS, _BATCH, _FEATURES)).astype(np.float32)
    wanted = onnxruntime.InferenceSession(data).run(None, {"x": x})
    found = read_onnx(data)(torch.from_numpy(x))
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (_file("LSTM", clip=1.0), "clipped, coupled or peephole gates"),
        (_file("RNN", activations=["Sigmoid"]), "its activations Sigmoid"),
        (_file("GRU", steps=65), "linear_before_reset=0 over more than 64 steps"),
    ],
    ids=["clip", "activation", "steps"],
)
def test_layers_that_torch_has_not_are_refused(data: bytes, words: str) -> None:
    module = read_onnx(data)
    steps = onnx.load_model_from_string(data).graph.input[0].type.tensor_type.shape.dim[0]
    with pytest.raises(UnsupportedModel, match=words):
        module(torch.zeros(steps.dim_value, _BATCH, _FEATURES))


@pytest.mark.parametrize("p", [1, 2])
def test_norms_of_whole_images_and_parts_of_sequences(p: int) -> None:
    nodes = [
        helper.make_node("GlobalLpPool", ["x"], ["n"], p=p),
        helper.make_node("SplitToSequence", ["n"], ["s"], axis=1, keepdims=1),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4, 5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 1, 1, 1])
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    value = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(1))
    norms = torch.linalg.vector_norm(value, p, (2, 3), keepdim=True)
    found = read_onnx(model.SerializeToString())(value)
    torch.testing.assert_close(found, norms.transpose(0, 1).reshape(6, 1, 1, 1))
