"""ONNX files and .pt2 archives over REST."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import graph_autofusion as gaf
from kernel_gen.frontend.convert import answer
from service.conversion import MEDIA_TYPES
from tests.fixtures.server import Service


def _onnx(first: int | str = 2) -> bytes:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [first, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [first, 4])
    weight = helper.make_tensor("w", TensorProto.FLOAT, [3, 4], np.ones(12))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    return bytes(model.SerializeToString())


def _post(service: Service, content: bytes, kind: str, **params: str) -> tuple[int, dict[str, str]]:
    headers = {"Content-Type": f"application/{kind}"}
    answer = service.http.post(
        "/v1/graphs", content=content, headers=headers, params=params, timeout=120
    )
    return answer.status_code, answer.json()


def test_an_onnx_file_becomes_a_graph(sqlite_service: Service) -> None:
    status, graph = _post(sqlite_service, _onnx(), "onnx")
    assert (status, graph["nodes"]) == (201, 2)
    text = sqlite_service.http.get(f"/v1/graphs/{graph['id']}").text
    assert '"parameter"' in text
    assert "AACAPw" not in text  # no weights in it


def test_extents_that_a_file_only_names(sqlite_service: Service) -> None:
    status, problem = _post(sqlite_service, _onnx("batch"), "onnx")
    assert (status, problem["code"]) == (422, "unsupported-model")
    status, graph = _post(sqlite_service, _onnx("batch"), "onnx", dim="batch=7")
    assert status == 201
    assert "[7,3]" in sqlite_service.http.get(f"/v1/graphs/{graph['id']}").text
    assert _post(sqlite_service, _onnx("batch"), "onnx", dim="batch")[0] == 422


@pytest.mark.filterwarnings("ignore")
def test_an_archive_has_the_id_of_the_model(sqlite_service: Service) -> None:
    model, x = nn.Sequential(nn.LayerNorm(8), nn.ReLU()).eval(), torch.randn(4, 8)
    target = io.BytesIO()
    torch.export.save(torch.export.export(model, (x,)), target)
    status, graph = _post(sqlite_service, target.getvalue(), "zip")
    assert (status, graph["id"]) == (201, gaf.capture(model, x).digest)


@pytest.mark.parametrize("kind", MEDIA_TYPES.values())
@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"PK\x03\x04broken"])
def test_damaged_files_are_errors_of_the_child(content: bytes, kind: str) -> None:
    assert answer(kind, content, {})["error"] == "InvalidInput"


def test_what_the_child_refuses_is_a_problem(sqlite_service: Service) -> None:
    status, problem = _post(sqlite_service, b"PK\x03\x04broken", "zip")
    assert (status, problem["code"]) == (422, "invalid-input")
    assert "no valid .pt2 archive" in problem["detail"]
