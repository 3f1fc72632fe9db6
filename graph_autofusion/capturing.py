"""`capture`: a model, as whatever the user has it, as a Graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from graph_autofusion.arguments import checked_path
from graph_autofusion.closure import adopt
from kernel_gen import frontend
from kernel_gen.errors import InvalidInput
from kernel_gen.frontend import exporting
from kernel_gen.frontend.files import read_model
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.serialize import read_graph


class Wrapper(torch.nn.Module):
    """A module that stands for another one, which is captured in its place."""

    @property
    def wrapped(self) -> torch.nn.Module:
        """The model itself."""
        raise NotImplementedError


def capture(
    model: torch.nn.Module | Callable[..., Any] | str | Path,
    example_inputs: Any = None,
    dynamic_shapes: Any = None,
) -> Graph:
    """The program of `model` as a Graph: structure and types, no weights.

    For a path of a model file, inputs may be left out where the file names all extents; a file of
    graph JSON is read as it is. Raises
    UnsupportedModel where torch.export cannot trace the model, InvalidInput for a damaged file.
    """
    if isinstance(model, str | Path):
        model = checked_path("model", model)
        if Path(model).suffix == ".json":
            return read_graph(Path(model))
        file = read_model(model)
        model = file.module
        example_inputs = file.example_inputs() if example_inputs is None else example_inputs
    if example_inputs is None:
        raise InvalidInput("capture(model, example_inputs): a model is captured by a call")
    with torch.no_grad():
        return frontend.capture(as_module(model), example_inputs, dynamic_shapes).graph


def as_module(model: torch.nn.Module | Callable[..., Any]) -> torch.nn.Module:
    """`model` itself, what a Wrapper stands for, or a module around a function."""
    if isinstance(model, Wrapper):
        return model.wrapped
    module = exporting.as_module(model)
    adopt(module)
    return module
