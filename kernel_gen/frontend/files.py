"""Models in files: ONNX, torch.export archives, TorchScript, graph JSON; and what to do about other
kinds."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from kernel_gen.errors import InvalidInput, Unavailable, UnsupportedModel
from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.ir.serialize import read_graph

KINDS = (".onnx", ".pt2", ".json")
_MOST_EXAMPLE_BYTES = 4 << 30  # of an input that is made up because a file only names its shape
_THROUGH_ONNX = "convert it to ONNX with {tool} and pass the .onnx file"
_ADVICE = {
    ".pb": _THROUGH_ONNX.format(tool="`python -m tf2onnx.convert --graphdef`"),
    ".tflite": _THROUGH_ONNX.format(tool="`python -m tf2onnx.convert --tflite`"),
    ".h5": _THROUGH_ONNX.format(tool="`python -m tf2onnx.convert --keras`"),
    ".keras": _THROUGH_ONNX.format(tool="`model.export(path, format='onnx')` of Keras"),
    ".safetensors": "it holds weights only: load them into the model and pass that",
    ".bin": "it holds weights only: load them into the model and pass that",
}


@dataclass(frozen=True, slots=True)
class FileModel:
    """A model of a file. `call` makes inputs for it, given extents of dimensions that the file only
    names."""

    module: nn.Module
    call: Callable[[Mapping[str, int]], tuple[Any, ...]]

    def example_inputs(self, dims: Mapping[str, int] | None = None) -> tuple[Any, ...]:
        """Random floats, and zeros of other types, of the extents that the file names.

        Raises UnsupportedModel for an open extent that `dims` does not give.
        """
        return self.call(dims or {})


def read_model(path: str | Path) -> FileModel:
    """The model of a file, its kind told by the suffix.

    Raises InvalidInput for a file that is damaged or missing, UnsupportedModel (with the way
    around) for what cannot be read, and Unavailable where the package that reads it is missing.
    """
    source = Path(path)
    if source.is_dir():
        raise InvalidInput(f"{source}: a folder, not a file")
    if not source.is_file():
        raise InvalidInput(f"{source}: no such file")
    match source.suffix.lower():
        case ".onnx":
            return of_onnx(source)
        case ".pt2":
            return of_program(_archive(source), str(source))
        case ".json":
            return _graph(source)
        case ".pt" | ".pth" | ".ts":
            return _script(source)
        case suffix:
            advice = _ADVICE.get(suffix, f"expected one of {', '.join(KINDS)}")
            raise UnsupportedModel(f"{source}: {advice}")


def of_onnx(source: Path | bytes) -> FileModel:
    """The model of an ONNX file or of its bytes; raises as `read_model` does."""
    try:
        from kernel_gen.frontend.onnx import read_onnx
    except ImportError as error:
        raise Unavailable("ONNX files need `pip install 'graph-autofusion[onnx]'`") from error
    module = read_onnx(source).eval()

    def call(dims: Mapping[str, int]) -> tuple[torch.Tensor, ...]:
        shapes = zip(module.arguments, module.example_shapes(dims), strict=True)
        return tuple(_example(argument.dtype, shape) for argument, shape in shapes)

    return FileModel(module, call)


def _archive(path: Path) -> torch.export.ExportedProgram:
    from kernel_gen.frontend.pt2 import read_pt2

    return read_pt2(path)


def _graph(path: Path) -> FileModel:
    from kernel_gen.frontend.graph_module import GraphModule

    graph = read_graph(path)
    types = [graph.type_of(given.value) for given in graph.inputs]
    hints = {symbol.name: symbol.hint for symbol in graph.symbols}

    def call(dims: Mapping[str, int]) -> tuple[torch.Tensor, ...]:
        sizes = {**hints, **dims}
        shapes = [tuple(n if isinstance(n, int) else sizes[n.name] for n in t.shape) for t in types]
        return tuple(_example(to_torch(t.dtype), s) for t, s in zip(types, shapes, strict=True))

    return FileModel(GraphModule(graph), call)


def of_program(program: torch.export.ExportedProgram, name: str) -> FileModel:
    """An exported program as a model; `name` says in errors where it is from."""
    args, kwargs = exported_inputs(program)
    if kwargs:
        raise UnsupportedModel(
            f"{name}: the program takes keyword arguments ({', '.join(kwargs)}); load it with "
            "torch.export.load and pass the module"
        )
    return FileModel(program.module().requires_grad_(False), lambda dims: args)


def exported_inputs(
    program: torch.export.ExportedProgram,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call of a program with the extents that it was exported with."""
    names = set(program.graph_signature.user_inputs)
    metas = [
        n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder" and n.name in names
    ]
    leaves = [_like(meta) for meta in metas]
    args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return tuple(args), dict(kwargs)


def _like(meta: Any) -> Any:
    """A tensor of the extents that were seen at the export, symbols included."""
    if not isinstance(meta, torch.Tensor):
        return meta
    extents = [n if isinstance(n, int) else int(n.node.hint) for n in meta.shape]
    return _example(meta.dtype, tuple(extents))


def _example(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Random floats; zeros of other types, which every index and token table has."""
    if min(shape, default=0) < 0:
        raise InvalidInput(f"an input of shape {shape}: extents are not negative")
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > _MOST_EXAMPLE_BYTES:
        raise UnsupportedModel(
            f"the file names an input of shape {shape}, {nbytes} bytes: pass example_inputs"
        )
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.zeros(shape, dtype=dtype)


def _script(path: Path) -> FileModel:
    """TorchScript names no extents, so such a file needs inputs from its user."""
    if not zipfile.is_zipfile(path):
        raise UnsupportedModel(f"{path}: no TorchScript archive; unpickling models is refused")
    with zipfile.ZipFile(path) as archive:
        is_script = any("/code/" in name for name in archive.namelist())
    if not is_script:
        raise UnsupportedModel(
            f"{path}: a pickle of a model or of weights is not loaded; build the model in Python, "
            "load the weights with weights_only=True and pass the model"
        )
    raise UnsupportedModel(
        f"{path}: TorchScript files do not say what inputs they take: load the file and pass the "
        "module with inputs, gaf.optimize(torch.jit.load(path), inputs)"
    )
