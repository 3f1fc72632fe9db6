"""Truncated, random and hostile model files: a typed error each, in little time and memory."""

from __future__ import annotations

import contextlib
import random
import zipfile
from pathlib import Path

import pytest

import graph_autofusion as gaf
from kernel_gen.errors import InvalidInput

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402 - after the check that it is there


def small_model(*nodes: object, inputs: object = None, initializers: object = ()) -> bytes:
    """An ONNX file of `nodes` from x (2, 3) to y."""
    given = inputs or [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])
    graph = helper.make_graph(list(nodes), "g", given, [result], initializer=list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    return bytes(model.SerializeToString())


RELU = helper.make_node("Relu", ["x"], ["y"])


def refused(content: bytes, folder: Path, suffix: str = ".onnx") -> InvalidInput:
    path = folder / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as found:
        gaf.capture(path)
    return found.value


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(small_model(RELU))
    assert [node.op for node in gaf.capture(path).nodes] == ["relu"]


def test_every_truncation_is_refused_or_read(tmp_path: Path) -> None:
    whole, path = small_model(RELU, helper.make_node("Exp", ["x"], ["z"])), tmp_path / "model.onnx"
    for end in range(0, len(whole), 3):
        path.write_bytes(whole[:end])
        with contextlib.suppress(InvalidInput):  # any other error fails the test
            gaf.capture(path)


def test_flipped_bytes_are_refused_or_read(tmp_path: Path) -> None:
    chance, path = random.Random(5), tmp_path / "model.onnx"
    for _ in range(60):
        content = bytearray(small_model(RELU))
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(bytes(content))
        with contextlib.suppress(InvalidInput):  # any other error fails the test
            gaf.capture(path)


def test_sizes_beyond_all_memory_are_refused(tmp_path: Path) -> None:
    huge = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    del huge.dims[:]
    huge.dims.extend([1 << 40, 1 << 20])
    add = helper.make_node("Add", ["x", "w"], ["y"])
    refused(small_model(add, initializers=[huge]), tmp_path)
    shape = helper.make_tensor("s", TensorProto.INT64, [3], [1 << 30, 1 << 30, 8])
    grown = helper.make_node("Expand", ["x", "s"], ["y"])
    refused(small_model(grown, initializers=[shape]), tmp_path)
    filled = helper.make_node("ConstantOfShape", ["s"], ["y"])
    refused(small_model(filled, initializers=[shape]), tmp_path)
    wide = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1 << 40, 3])]
    refused(small_model(RELU, inputs=wide), tmp_path)
    negative = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [-2, 3])]
    refused(small_model(RELU, inputs=negative), tmp_path)


def test_values_that_nobody_makes_and_circles_are_refused(tmp_path: Path) -> None:
    refused(small_model(helper.make_node("Relu", ["nothing"], ["y"])), tmp_path)
    circle = (helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"]))
    refused(small_model(*circle, helper.make_node("Add", ["a", "x"], ["y"])), tmp_path)


def test_unknown_operators_are_named(tmp_path: Path) -> None:
    odd = helper.make_node("LaunchMissiles", ["x"], ["y"], name="boom")
    assert "LaunchMissiles" in str(refused(small_model(odd), tmp_path))


def test_archives_of_nothing_and_bombs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/archive_format", "pt2")
        archive.writestr("model/models/model.json", b"[" * (80 << 20))
    content = path.read_bytes()
    assert len(content) < 1 << 20
    refused(content, tmp_path, ".pt2")
    refused(content[: len(content) // 2], tmp_path, ".pt2")
    refused(b"", tmp_path, ".pt2")


def test_json_that_is_deep_or_large_is_refused(tmp_path: Path) -> None:
    refused(b"[" * 200_000, tmp_path, ".json")
    refused(b'{"values":' * 50_000, tmp_path, ".json")
    refused(b'{"values":[' + b"1," * 200_000 + b"1]}", tmp_path, ".json")


def test_ten_thousand_nodes_are_a_program(tmp_path: Path) -> None:
    """A chain as deep as that passes every walk over graphs; above the limit it is refused."""
    from kernel_gen.ir.builder import GraphBuilder
    from kernel_gen.ir.dtype import DType
    from kernel_gen.ir.serialize import graph_from_json
    from kernel_gen.ir.types import TensorType

    def chain(nodes: int) -> str:
        b = GraphBuilder()
        value = b.input(TensorType(DType.F32, (4,)))
        for number in range(nodes):
            value = b.op(("relu", "exp", "neg")[number % 3], value)
        b.output(value)
        return str(b.build().to_json())

    graph = graph_from_json(chain(10_000))
    assert len(graph.nodes) == 10_000
    assert graph_from_json(graph.to_json()).digest == graph.digest
    with pytest.raises(InvalidInput, match="nodes"):
        graph_from_json(chain(20_001))
