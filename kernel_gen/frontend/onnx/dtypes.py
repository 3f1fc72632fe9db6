"""ONNX element types as torch dtypes. Unsigned integers of 16 and more bits are left out: torch
stores them, but has next to no arithmetic on them."""

from __future__ import annotations

import onnx
import torch

from kernel_gen.errors import UnsupportedModel

_TYPES: dict[int, torch.dtype] = {
    onnx.TensorProto.FLOAT: torch.float32,
    onnx.TensorProto.DOUBLE: torch.float64,
    onnx.TensorProto.FLOAT16: torch.float16,
    onnx.TensorProto.BFLOAT16: torch.bfloat16,
    onnx.TensorProto.INT8: torch.int8,
    onnx.TensorProto.INT16: torch.int16,
    onnx.TensorProto.INT32: torch.int32,
    onnx.TensorProto.INT64: torch.int64,
    onnx.TensorProto.UINT8: torch.uint8,
    onnx.TensorProto.BOOL: torch.bool,
}


def torch_dtype(code: int, what: str) -> torch.dtype:
    """The dtype of an ONNX type code; raises UnsupportedModel naming `what` has it."""
    found = _TYPES.get(code)
    if found is None:
        names = onnx.TensorProto.DataType
        label = names.Name(code) if code in names.values() else code
        raise UnsupportedModel(f"{what} is of ONNX type {label}, which is not supported")
    return found
