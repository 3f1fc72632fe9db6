"""Reading ONNX files: limits first, then onnx's own checker, then the operators."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from kernel_gen.errors import InvalidInput, UnsupportedModel
from kernel_gen.frontend.onnx.module import OnnxModule, unsupported

OPSETS = (13, 25)  # of the default domain: what the rules are written for
MAX_FILE_BYTES = 2 << 30  # the format's own limit
MAX_STAND_IN_BYTES = 3 << 29  # of weights that stay elsewhere; below the format's limit


def read_onnx(source: str | Path | bytes) -> OnnxModule:
    """The model of a file (or of its bytes).

    Raises InvalidInput for what is no valid ONNX file, and UnsupportedModel, naming the operators,
    for one that has no rules here. Weights beside the file are read from its own folder only; bytes
    have no folder, so such weights are zeros.
    """
    model = _parse(source)
    if isinstance(source, bytes):
        _stand_in(model)
    name = "these bytes" if isinstance(source, bytes) else str(source)
    opset = _opset(model, name)
    _check(model, name)
    missing = unsupported(model)
    if missing:
        raise UnsupportedModel(
            f"ONNX operators without a rule: {', '.join(missing)}. Load the model in PyTorch, or "
            "split the file around them"
        )
    return OnnxModule(model, opset)


def _parse(source: str | Path | bytes) -> onnx.ModelProto:
    try:
        if isinstance(source, bytes):
            return onnx.load_model_from_string(source)
        path = Path(source)
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InvalidInput(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        return onnx.load_model(path)
    except OSError as error:
        raise InvalidInput(f"{source!r}: {error.strerror or error}") from error
    except (DecodeError, onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        name = "these bytes" if isinstance(source, bytes) else str(source)
        raise InvalidInput(f"{name} is no valid ONNX file: {_first_line(error)}") from error


def _stand_in(model: onnx.ModelProto) -> None:
    """Zeros for floating-point initializers whose data are in another file."""
    room = MAX_STAND_IN_BYTES
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        nbytes = math.prod(tensor.dims) * dtype.itemsize
        room -= nbytes
        if dtype.kind not in "fV" or room < 0:
            raise InvalidInput(
                f"the data of initializer {tensor.name!r} are in another file: capture the model "
                "where that file is (`gaf submit model.onnx`)"
            )
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.raw_data = bytes(nbytes)


def _opset(model: onnx.ModelProto, name: str) -> int:
    """The version of the default operators; raises UnsupportedModel."""
    versions = [i.version for i in model.opset_import if i.domain in ("", "ai.onnx")]
    low, high = OPSETS
    if not versions:
        raise InvalidInput(f"{name}: no valid ONNX file: it names no operator set")
    if not low <= versions[0] <= high:
        raise UnsupportedModel(
            f"ONNX opset {versions[0]}: {low} to {high} are read; convert the file with "
            f"onnx.version_converter.convert_version(model, {high})"
        )
    return int(versions[0])


def _check(model: onnx.ModelProto, name: str) -> None:
    model.graph.name = model.graph.name or "graph"  # says nothing, but the checker wants one
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{name}: not a valid ONNX file: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
