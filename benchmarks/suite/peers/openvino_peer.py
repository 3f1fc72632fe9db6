"""OpenVINO on the exported program; each call writes into output tensors made for it.

OpenVINO's Python package reports its import over the network where its telemetry package is
installed. That package is hidden before the import: no message leaves.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import Tensor

from benchmarks.suite.peers.work import Built, Work, exported, tensors_of

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # import of it now fails

import openvino as ov  # noqa: E402 - after its telemetry was hidden

_TYPES = {
    torch.float32: ov.Type.f32,
    torch.float64: ov.Type.f64,
    torch.float16: ov.Type.f16,
    torch.bfloat16: ov.Type.bf16,
    torch.int64: ov.Type.i64,
    torch.int32: ov.Type.i32,
    torch.int16: ov.Type.i16,
    torch.int8: ov.Type.i8,
    torch.uint8: ov.Type.u8,
    torch.bool: ov.Type.boolean,
}
_DTYPES = {kind: dtype for dtype, kind in _TYPES.items()}
_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def build(work: Work) -> Built:
    inputs = tuple(tensor.contiguous() for tensor in tensors_of(work))
    model = ov.convert_model(exported(work))
    _fix_inputs(model, inputs)
    compiled = ov.Core().compile_model(model, "CPU", _options(work))
    request = compiled.create_infer_request()
    for position, tensor in enumerate(inputs):
        request.set_input_tensor(position, _shared(tensor))
    shapes = [(tuple(o.get_shape()), _DTYPES[o.get_element_type()]) for o in compiled.outputs]

    # The request reads the inputs' memory without holding it: the default argument does.
    def run(_held: tuple[Tensor, ...] = inputs) -> list[Tensor]:
        outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in shapes]
        for position, tensor in enumerate(outputs):
            request.set_output_tensor(position, _shared(tensor))
        request.infer()
        return outputs

    return Built(run, lambda outputs: [tensor.clone() for tensor in outputs])


def _options(work: Work) -> dict[str, object]:
    """One stream on all threads; no silent change of precision on processors with bf16."""
    narrow = any(x.dtype == torch.bfloat16 for x in work.inputs if torch.is_tensor(x))
    precision = ov.Type.bf16 if narrow else ov.Type.f32
    return {
        "INFERENCE_NUM_THREADS": work.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision.get_type_name(),
    }


def _fix_inputs(model: ov.Model, inputs: tuple[Tensor, ...]) -> None:
    if len(model.inputs) != len(inputs):
        raise ValueError(f"{len(model.inputs)} inputs after conversion, not {len(inputs)}")
    for port, tensor in zip(model.inputs, inputs, strict=True):
        port.get_node().set_partial_shape(ov.PartialShape(list(tensor.shape)))
    model.validate_nodes_and_infer_types()


def _shared(tensor: Tensor) -> ov.Tensor:
    """The tensor's memory as OpenVINO sees it, of any element type. The caller keeps it alive."""
    bits = tensor.reshape(-1).view(torch.uint8).numpy() if tensor.numel() else np.empty(0, np.uint8)
    view = bits.view(_BITS[tensor.element_size()])
    return ov.Tensor(view, ov.Shape(list(tensor.shape)), _TYPES[tensor.dtype])
