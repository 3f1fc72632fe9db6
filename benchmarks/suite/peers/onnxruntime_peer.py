"""ONNX Runtime on the program as torch.onnx exports it; inputs are bound, outputs are its own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import onnxruntime as ort
import torch
from torch import Tensor

from benchmarks.suite.peers.work import Built, Functional, Work, tensors_of


def build(work: Work) -> Built:
    inputs = tensors_of(work)
    with tempfile.TemporaryDirectory(prefix="gaf-bench-") as folder:
        session = _session(_export(work, Path(folder, "model.onnx")), work.threads)
    names = [entry.name for entry in session.get_outputs()]
    wanted = {entry.name for entry in session.get_inputs()}
    given = zip((f"x{i}" for i in range(len(inputs))), inputs, strict=True)
    feeds = {name: _value(tensor) for name, tensor in given if name in wanted}
    return Built(lambda: session.run_with_ort_values(names, feeds), _tensors)


def _export(work: Work, path: Path) -> Path:
    module = Functional(work).eval()
    names = [f"x{i}" for i in range(len(work.inputs))]
    torch.onnx.export(
        module, work.inputs, str(path), dynamo=True, verbose=False, input_names=names,
        external_data=True, optimize=True,
    )  # fmt: skip
    return path


def _session(path: Path, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _value(tensor: Tensor) -> Any:
    return ort.OrtValue.from_dlpack(tensor.contiguous())


def _tensors(values: list[Any]) -> list[Tensor]:
    return [torch.utils.dlpack.from_dlpack(value).clone() for value in values]
