"""What `gaf tune` and `gaf submit` work on: a graph file, or a model named `module:callable`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from graph_autofusion.progress import waiting
from kernel_gen.errors import GafError, InvalidInput
from kernel_gen.ir.graph import Graph

HELP = (
    "an ONNX file, a torch.export archive (.pt2), a graph as JSON (what Graph.to_json gives), or "
    "module:callable / file.py:callable, where the callable takes nothing and returns (model, "
    "example_inputs)"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A graph, and the model it was captured from where there is one."""

    graph: Graph
    model: Any = None
    example_inputs: Any = None


def load_subject(text: str, dims: Sequence[str] = ()) -> Subject:
    """Reads a file, or imports and captures a model; raises InvalidInput.

    `dims` are `NAME=SIZE`, for dimensions that a model file only names.
    """
    # What the user's code prints belongs to neither a table nor a JSON document.
    with waiting("capturing the program"), redirect_stdout(sys.stderr):
        return _load(text, dims)


def _load(text: str, dims: Sequence[str]) -> Subject:
    path = Path(text)
    if path.is_dir():
        raise InvalidInput(f"{text}: a folder; expected {HELP}")
    if path.suffix == ".json":
        _refuse_dims(text, dims)
        from kernel_gen.ir.serialize import read_graph

        return Subject(read_graph(path))
    if ":" in text and not path.is_file():
        _refuse_dims(text, dims)
        return _capture(text)
    if path.suffix == ".py":
        raise InvalidInput(
            f"name the function: {text}:build, where build takes nothing and returns (model, "
            "example_inputs)"
            if path.is_file()
            else f"{text}: no such file"
        )
    if not path.suffix:
        raise InvalidInput(f"{text!r}: expected {HELP}")
    if path.suffix != ".onnx":
        _refuse_dims(text, dims)
    return _read_model(path, _extents(dims))


def _refuse_dims(text: str, dims: Sequence[str]) -> None:
    if dims:
        raise InvalidInput(
            f"--dim {dims[0]}: {text} says all its extents itself; --dim is for ONNX files that "
            "only name some"
        )


def _read_model(path: Path, dims: Mapping[str, int]) -> Subject:
    from graph_autofusion.capturing import capture
    from kernel_gen.frontend.files import read_model

    file = read_model(path)
    inputs = file.example_inputs(dims)
    return Subject(capture(file.module, inputs), file.module, inputs)


def _extents(dims: Sequence[str]) -> dict[str, int]:
    found = {}
    for text in dims:
        name, _, size = text.partition("=")
        if not name or not size.isdecimal():
            raise InvalidInput(f"--dim {text!r}: expected NAME=SIZE, as in batch=8")
        found[name] = int(size)
    return found


def _capture(text: str) -> Subject:
    from graph_autofusion.capturing import capture

    module_name, _, attribute = text.rpartition(":")
    module = _import(module_name)
    factory = getattr(module, attribute, None)
    if not callable(factory):
        raise InvalidInput(f"{module_name} has no callable {attribute!r}")
    _require_no_arguments(text, factory)
    with _users_code(f"{text} raised", getattr(module, "__file__", None)):
        made = factory()
    if not (isinstance(made, tuple) and len(made) == 2):
        raise InvalidInput(f"{text} returned {type(made).__name__}, not (model, example_inputs)")
    model, inputs = made
    return Subject(capture(model, inputs), model, inputs)


def _require_no_arguments(text: str, factory: Callable[..., Any]) -> None:
    try:
        inspect.signature(factory).bind()
    except TypeError as error:
        raise InvalidInput(f"{text} cannot be called without arguments: {error}") from error
    except ValueError:
        return  # a callable that does not show its parameters


def _import(name: str) -> ModuleType:
    if name.endswith(".py"):
        return _import_file(Path(name))
    sys.path.insert(0, str(Path.cwd()))
    try:
        with _users_code(f"cannot import {name!r}:", None):
            return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def _import_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.exists():
        raise InvalidInput(f"{path}: no such file")
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidInput(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    with _users_code(f"{path} raised", str(path.absolute())):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _users_code(what: str, file: str | None) -> Iterator[None]:
    """Code of the user's runs in this block; raises InvalidInput, with the line last reached in
    `file` (anywhere, if that is None), for whatever it raises."""
    try:
        yield
    except GafError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"{what} {type(error).__name__}: {error}{_line_reached(error, file)}"
        ) from error


def _line_reached(error: Exception, file: str | None) -> str:
    """` (own.py:28)`; nothing where the error names its own line, or comes from no file."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.lineno]
    if isinstance(error, SyntaxError | ImportError):
        return ""
    theirs = [frame for frame in frames if file is None or Path(frame.filename) == Path(file)]
    return f" ({Path(theirs[-1].filename).name}:{theirs[-1].lineno})" if theirs else ""
