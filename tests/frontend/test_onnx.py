"""ONNX files as models: written by torch's exporters and by hand, run by ONNX Runtime as well."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from kernel_gen.errors import InvalidInput, UnsupportedModel
from kernel_gen.frontend import capture
from kernel_gen.frontend.files import read_model
from kernel_gen.frontend.onnx import read_onnx
from kernel_gen.frontend.onnx.reading import OPSETS

Save = Callable[..., Path]


class _Small(nn.Module):
    """Convolution, norm, attention-like products, shape arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.inner = nn.LayerNorm(64)
        self.query = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm(self.conv(x))).flatten(2)
        y = self.inner(y)
        scores = torch.softmax(self.query(y) @ y.transpose(1, 2) / 8.0, -1)
        return nn.functional.gelu(scores @ y)[:, ::2].reshape(x.shape[0], -1)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Writes a model of nodes over x [2, n] (or [2, 3]) and gives its path."""

    def write(
        *nodes: onnx.NodeProto,
        shape: tuple[int | str, ...] = (2, 3),
        opset: int = 20,
        initializers: tuple[onnx.TensorProto, ...] = (),
    ) -> Path:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])
        graph = helper.make_graph(list(nodes), "g", [x], [y], list(initializers))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return path

    return write


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("opset", [13, 17])
def test_a_file_of_torch_agrees_with_onnx_runtime(tmp_path: Path, opset: int) -> None:
    torch.manual_seed(0)
    model, x = _Small().eval(), torch.randn(2, 3, 8, 8)
    path = tmp_path / "small.onnx"
    with torch.no_grad():
        torch.onnx.export(model, (x,), str(path), dynamo=False, opset_version=opset)
        wanted = model(x)
    session = onnxruntime.InferenceSession(path)
    reference = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    file = read_model(path)
    torch.testing.assert_close(file.module(x), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(file.module(x).numpy(), reference, rtol=1e-4, atol=1e-5)
    assert file.example_inputs()[0].shape == x.shape


@pytest.mark.filterwarnings("ignore")
def test_what_depends_on_shapes_only_is_not_in_the_graph(tmp_path: Path) -> None:
    x = torch.randn(2, 3, 8, 8)
    path = tmp_path / "small.onnx"
    with torch.no_grad():
        torch.onnx.export(_Small().eval(), (x,), str(path), dynamo=False, opset_version=17)
    graph = capture(read_model(path).module, (x,)).graph
    assert not [node for node in graph.nodes if node.op == "framework"]
    assert {"layer_norm", "softmax", "matmul"} <= {node.op for node in graph.nodes}


def test_open_extents_are_asked_for_by_name(save: Save) -> None:
    file = read_model(save(helper.make_node("Relu", ["x"], ["y"]), shape=("batch", 3)))
    with pytest.raises(UnsupportedModel, match=r"x\[0\] \(batch\)"):
        file.example_inputs()
    assert file.example_inputs({"batch": 5})[0].shape == (5, 3)
    with pytest.raises(InvalidInput, match="no dimension 'bach': it names batch"):
        file.example_inputs({"bach": 5})


def test_a_graph_may_be_without_a_name(save: Save) -> None:
    path = save(helper.make_node("Relu", ["x"], ["y"]), shape=(2, 3))
    model = onnx.load_model(path)
    model.graph.name = ""
    onnx.save_model(model, path)
    assert read_model(path).module(torch.ones(2, 3)).shape == (2, 3)


def test_a_module_survives_copies_and_pickles(save: Save) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [3, 4], np.arange(12.0))
    path = save(helper.make_node("MatMul", ["x", "w"], ["y"]), initializers=(weight,))
    module, x = read_onnx(path), torch.randn(2, 3)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):  # noqa: S301 - ours
        assert torch.equal(other(x), module(x))
    assert [tuple(p.shape) for p in module.parameters()] == [(3, 4)]


def test_what_is_folded_in_a_branch_is_its_own(save: Save) -> None:
    """Two nodes of one branch over equal constants: each keeps its own result, call after call."""
    two = helper.make_tensor("two", TensorProto.INT64, [1], [2])
    three = helper.make_tensor("three", TensorProto.INT64, [1], [3])
    branch = helper.make_graph(
        [
            helper.make_node("Add", ["two", "three"], ["sum"]),
            helper.make_node("Mul", ["two", "three"], ["product"]),
            helper.make_node("Sub", ["product", "sum"], ["one"]),
            helper.make_node("Cast", ["one"], ["taken"], to=TensorProto.FLOAT),
        ],
        "branch",
        [],
        [helper.make_tensor_value_info("taken", TensorProto.FLOAT, [1])],
    )
    nodes = [
        helper.make_node("If", ["yes"], ["shift"], then_branch=branch, else_branch=branch),
        helper.make_node("Add", ["x", "shift"], ["y"]),
    ]
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    module, x = read_onnx(save(*nodes, initializers=(two, three, yes))), torch.randn(2, 3)
    for other in (module, module, copy.deepcopy(module)):
        assert torch.equal(other(x), x + 1)


def test_operators_without_a_rule_are_named(save: Save) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("Multinomial", ["x"], ["y"]),
    ]
    with pytest.raises(UnsupportedModel, match="Multinomial, NonZero"):
        read_onnx(save(*nodes))


def test_numbers_that_depend_on_data_are_refused(save: Save) -> None:
    """The shape of a reshape comes out of the input itself."""
    nodes = [
        helper.make_node("Cast", ["x"], ["shape"], to=TensorProto.INT64),
        helper.make_node("Flatten", ["shape"], ["flat"], axis=0),
        helper.make_node("Squeeze", ["flat", "zero"], ["wanted"]),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    zero = helper.make_tensor("zero", TensorProto.INT64, [1], [0])
    module = read_onnx(save(*nodes, shape=(1, 2), initializers=(zero,)))
    with pytest.raises(UnsupportedModel, match="depends on the data"):
        capture(module, (torch.tensor([[1.0, 2.0]]),))


@pytest.mark.parametrize("opset", [OPSETS[0] - 1, OPSETS[1] + 1])
def test_other_opsets_name_the_conversion(save: Save, opset: int) -> None:
    with pytest.raises(UnsupportedModel, match="convert_version"):
        read_onnx(save(helper.make_node("Relu", ["x"], ["y"]), opset=opset))


def test_what_is_no_onnx_file(save: Save, tmp_path: Path) -> None:
    good = save(helper.make_node("Relu", ["x"], ["y"])).read_bytes()
    dangling = save(helper.make_node("Relu", ["nothing"], ["y"])).read_bytes()
    for content in (b"", b"\x00" * 64, good[: len(good) // 2], b"hello", dangling):
        path = tmp_path / "bad.onnx"
        path.write_bytes(content)
        with pytest.raises(InvalidInput):
            read_model(path)
    with pytest.raises(InvalidInput, match="no such file"):
        read_model(tmp_path / "missing.onnx")


def test_weights_outside_of_the_folder_are_not_read(save: Save) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [3, 4], np.zeros(12))
    weight.ClearField("float_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../../../../etc/hostname")
    path = save(helper.make_node("MatMul", ["x", "w"], ["y"]), initializers=(weight,))
    with pytest.raises(InvalidInput):
        read_model(path)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("m.pb", "tf2onnx"),
        ("m.keras", "onnx"),
        ("m.safetensors", "weights only"),
        ("m.xyz", "expected one of"),
    ],
)
def test_other_kinds_of_files_name_the_way(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(UnsupportedModel, match=advice):
        read_model(tmp_path / name)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()
    with pytest.raises(InvalidInput, match=r"empty\.onnx: no valid ONNX file"):
        read_onnx(path)
