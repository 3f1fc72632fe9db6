"""The models as files: ONNX by torch's exporters, each opset, checked by ONNX Runtime; archives."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from kernel_gen.frontend import capture
from kernel_gen.frontend.files import read_model
from kernel_gen.frontend.onnx.reading import OPSETS
from tests.models.zoo import case

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
# Up to 17 by torch's old exporter, from 18 by its new one.
_OPSET = {
    "ResNet-50": 13,
    "MobileNetV2": 14,
    "LLaMA": 15,
    "LLaMA, one token": 16,
    "ViT": 17,
    "BERT": 18,
    "GPT-2": 19,
    "GPT-2, embeddings": 20,
    "Whisper encoder": 21,
    "Mixtral-style layer": 21,
    "T5": 22,
}
_WITH_LOOPS = {"DLRM": (13, 18)}  # bags of embeddings are loops with a known number of rounds
_CASES = [*_OPSET.items(), *((name, o) for name, opsets in _WITH_LOOPS.items() for o in opsets)]


class _Plain(nn.Module):
    """A model of tensors only: keyword arguments by position, results as a flat tuple."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *args: Tensor) -> tuple[Tensor, ...]:
        first = len(args) - len(self.names)
        named = dict(zip(self.names, args[first:], strict=True))
        leaves = pytree.tree_leaves(self.model(*args[:first], **named))
        return tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Exporters talk about their steps."""
    logging.disable(logging.CRITICAL)
    with torch.no_grad():
        yield
    logging.disable(logging.NOTSET)


def _plain(name: str) -> tuple[_Plain, tuple[Tensor, ...]]:
    made = case(name, torch.float32)
    model = _Plain(made.module, tuple(made.kwargs)).eval()
    return model, (*made.args, *made.kwargs.values())


@pytest.mark.parametrize(("name", "opset"), _CASES)
def test_an_onnx_file_is_the_model(tmp_path: Path, name: str, opset: int) -> None:
    model, args = _plain(name)
    path = tmp_path / "model.onnx"
    new = {"verbose": False} if opset >= 18 else {}
    torch.onnx.export(model, args, path, dynamo=opset >= 18, opset_version=opset, **new)
    imported = {item.domain: item.version for item in onnx.load(path).opset_import}
    assert imported[""] == opset
    session = onnxruntime.InferenceSession(path)
    given = zip(session.get_inputs(), args, strict=True)
    expected = session.run(None, {item.name: value.numpy() for item, value in given})
    file = read_model(path)
    found = pytree.tree_leaves(file.module(*args))
    for have, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-4, atol=5e-5)
    graph = capture(file.module, args).graph
    left = {node.attr("target") for node in graph.nodes if node.op == "framework"}
    assert left <= {"aten.sort.stable"}  # ONNX says which of equals TopK gives first


def test_each_opset_that_torch_writes_is_tried() -> None:
    assert set(_OPSET.values()) == set(range(13, 23))
    assert OPSETS[0] <= 13
    assert OPSETS[1] >= 22


@pytest.mark.parametrize("name", ["BERT", "LLaMA, one token", "ViT", "Mixtral-style layer", "DLRM"])
def test_an_archive_is_the_model(tmp_path: Path, name: str) -> None:
    model, args = _plain(name)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, args), path)
    file = read_model(path)
    found = pytree.tree_leaves(file.module(*args))
    for have, want in zip(found, model(*args), strict=True):
        assert torch.equal(have, want)
    assert capture(file.module, args).graph.digest == capture(model, args).graph.digest


@pytest.mark.parametrize("name", ["ViT", "Mixtral-style layer", "DLRM"])
def test_a_script_is_converted(name: str) -> None:
    """Traced, with extents that do not depend on masks: torch's converter takes no others."""
    model, args = _plain(name)
    script = torch.jit.trace(model, args, check_trace=False)
    captured = capture(script, args)
    for have, want in zip(_run(captured, script, args), model(*args), strict=True):
        torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-5)


def _run(captured: object, script: nn.Module, args: tuple[Tensor, ...]) -> list[Tensor]:
    from kernel_gen.frontend.captured import Captured
    from kernel_gen.frontend.torch_run import TorchProgram

    assert isinstance(captured, Captured)
    user = captured.flatten(list(args), {})
    assert user is not None
    inputs = captured.bind(script, user)
    return pytree.tree_leaves(captured.rebuild(inputs, TorchProgram(captured.graph)(*inputs)))
