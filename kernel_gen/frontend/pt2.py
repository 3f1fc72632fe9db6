"""`.pt2` archives (torch.export.save) read without unpickling and without running what they name.

torch's own loader unpickles sample inputs, looks operators up by any dotted name and evaluates
expressions. Here the JSON program is cut to what a plain program needs, checked against lists of
what is allowed, and only then handed to torch's deserialiser; weights are raw bytes.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch._export.serde import schema
from torch._export.serde.serialize import (
    ExportedProgramDeserializer,
    SerializeError,
    _bytes_to_dataclass,
    deserialize_scalar_type,
)

from kernel_gen.errors import GafError, InvalidInput, UnsupportedModel

MAX_PROGRAM_BYTES = 64 << 20
MAX_FILES = 100_000
_TARGET = re.compile(
    r"torch\.ops\.aten\.[A-Za-z0-9_]+\.[A-Za-z0-9_]+\Z"
    r"|torch\.ops\.higher_order\.wrap_with_(set_grad_enabled|autocast)\Z"
    r"|_operator\.(getitem|add|sub|mul|floordiv|mod|neg|eq|ne|lt|le|gt|ge)\Z"
)
# What an expression of extents may be made of: no names that Python would look up, no powers.
_EXPRESSION = re.compile(
    r"(?:Symbol\('[su]\d+'(?:, [a-z_]+=(?:True|False))*\)|(?:Integer\()?-?\d{1,19}"
    r"|(?:Add|Mul|Max|Min|FloorDiv|CleanDiv|Mod)\(|[), ])+\Z"
)
# What zipfile and readers of the JSON raise of altered bytes: names that are no UTF-8, other
# methods of compression, passwords, values of other types.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError),
    *(SerializeError, LookupError, TypeError, ValueError, AttributeError, OverflowError),
)
_CONTAINERS = ("builtins.tuple", "builtins.list", "builtins.dict", None)
_MODEL = re.compile(r"(?:[^/]+/)?models/([^/]+)\.json\Z")


def read_pt2(source: str | Path | bytes, *, weights: bool = True) -> torch.export.ExportedProgram:
    """The program of an archive; without `weights` its parameters and buffers are zeros.

    Raises InvalidInput for what is no such archive, UnsupportedModel for what is not read from one:
    several programs, pickled tensors, custom objects and operators.
    """
    try:
        with zipfile.ZipFile(
            io.BytesIO(source) if isinstance(source, bytes) else source
        ) as archive:
            return _read(archive, weights)
    except OSError as error:
        raise InvalidInput(f"{source!r}: {error.strerror or error}") from error
    except GafError:
        raise
    except _DAMAGE as error:
        name = "these bytes" if isinstance(source, bytes) else str(source)
        raise InvalidInput(
            f"{name} is no valid .pt2 archive: {type(error).__name__}: {error}"
        ) from error


def _read(archive: zipfile.ZipFile, weights: bool) -> torch.export.ExportedProgram:
    if len(archive.namelist()) > MAX_FILES:
        raise InvalidInput(f"no valid .pt2 archive: more than {MAX_FILES} files")
    found = [name for name in archive.namelist() if _MODEL.match(name)]
    if len(found) != 1:
        raise InvalidInput(f"a .pt2 archive holds one program, this one holds {len(found)}")
    root, model = found[0].rpartition("models/")[0], _name(found[0])
    program = _plain_program(_json(archive, found[0], MAX_PROGRAM_BYTES))
    state = _tensors(archive, f"{root}data/weights/", f"{model}_weights_config.json", weights)
    constants = _tensors(archive, f"{root}data/constants/", f"{model}_constants_config.json", True)
    try:
        typed = _bytes_to_dataclass(schema.ExportedProgram, json.dumps(program).encode())
        return _without_detaching(
            ExportedProgramDeserializer().deserialize(typed, state, constants)
        )
    except (AttributeError, TypeError, ValueError, AssertionError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {str(error)[:300]}"
        raise InvalidInput(
            f"torch {torch.__version__} cannot read the program: {reason}"
        ) from error


def _without_detaching(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """torch writes `detach_` behind each literal tensor, and cannot trace it a second time."""
    for node in list(program.graph.nodes):
        if node.target is torch.ops.aten.detach_.default:
            node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)
    program.graph_module.recompile()
    return program


def _name(path: str) -> str:
    match = _MODEL.match(path)
    assert match is not None
    return match.group(1)


def _json(archive: zipfile.ZipFile, name: str, limit: int) -> dict[str, Any]:
    content = _bytes(archive, name, limit)
    try:
        found = json.loads(content)
    except (UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{name} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{name} is no JSON object")
    return found


def _bytes(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """The content of a file, read no further than `limit` whatever the archive says of its size."""
    with archive.open(name) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise InvalidInput(f"{name} is larger than {limit} bytes")
    return content


def _plain_program(program: dict[str, Any]) -> dict[str, Any]:
    """The program without what is code, or notes of how it came about; raises if more is left."""
    signatures = [c for c in program.get("module_call_graph", []) if c.get("fqn") == ""]
    program["guards_code"] = []
    program.get("graph_module", {})["module_call_graph"] = [
        c for c in program.get("graph_module", {}).get("module_call_graph", []) if c["fqn"] == ""
    ]
    if "module_call_graph" in program:
        program["module_call_graph"] = signatures
    for item in _objects(program):
        _check_object(item)
    return program


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All JSON objects in a value."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _check_object(item: dict[str, Any]) -> None:
    if "target" in item and "metadata" in item:
        if not _TARGET.match(str(item["target"])):
            raise UnsupportedModel(
                f"the program calls {str(item['target'])[:100]!r}, which is not "
                "among torch's own operators; capture the model in PyTorch"
            )
        item["metadata"] = {}
    if "expr_str" in item and not _EXPRESSION.match(str(item["expr_str"])):
        raise UnsupportedModel(f"an extent is {str(item['expr_str'])[:100]!r}, which is not read")
    for key in ("as_custom_obj", "as_operator", "custom_obj"):
        if item.get(key) is not None:
            raise UnsupportedModel(f"the program holds an object of its own kind ({key})")
    for key in ("in_spec", "out_spec"):
        if isinstance(item.get(key), str):
            _check_tree(item[key])


def _check_tree(text: str) -> None:
    """Arguments and results may be nested in tuples, lists and dicts of names."""
    for node in _objects(json.loads(text)):
        if "type" in node and node["type"] not in _CONTAINERS:
            raise UnsupportedModel(f"arguments or results in a {node['type']!r} are not read")
        if isinstance(node.get("context"), str) and "__enum__" in node["context"]:
            raise UnsupportedModel("arguments or results under keys that are no names are not read")


def _tensors(
    archive: zipfile.ZipFile, folder: str, config: str, weights: bool
) -> dict[str, torch.Tensor]:
    """Tensors by name, as their configuration file lists them."""
    listed = _json(archive, folder + config, MAX_PROGRAM_BYTES).get("config", {})
    held: dict[str, torch.Tensor] = {}
    found: dict[str, torch.Tensor] = {}
    for name, meta in listed.items():
        if meta.get("use_pickle") or meta.get("tensor_meta") is None:
            raise UnsupportedModel(f"{name} is stored as a pickle, which is not read")
        path = folder + str(meta["path_name"])
        if weights and path not in held:
            held[path] = _raw(archive, path, meta["tensor_meta"])
        found[name] = _tensor(meta, held.get(path))
    return found


def _raw(archive: zipfile.ZipFile, path: str, meta: Mapping[str, Any]) -> torch.Tensor:
    dtype = deserialize_scalar_type(schema.ScalarType(meta["dtype"]))
    content = bytearray(archive.read(path))
    if len(content) % dtype.itemsize:
        raise InvalidInput(f"{path}: {len(content)} bytes are no tensor of {dtype}")
    return torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)


def _tensor(meta: Mapping[str, Any], raw: torch.Tensor | None) -> torch.Tensor:
    """A view of the stored elements, or zeros of the same shape; extents must fit the storage."""
    described = meta["tensor_meta"]
    sizes = [_int(n) for n in described["sizes"]]
    strides = [_int(n) for n in described["strides"]]
    dtype = deserialize_scalar_type(schema.ScalarType(described["dtype"]))
    if raw is None:
        tensor = torch.empty_strided(sizes, strides, dtype=dtype).zero_()
    else:
        try:
            tensor = torch.as_strided(raw, sizes, strides, _int(described["storage_offset"]))
        except RuntimeError as error:
            raise InvalidInput(f"a tensor does not fit its stored bytes: {error}") from error
    return torch.nn.Parameter(tensor, requires_grad=False) if meta.get("is_param") else tensor


def _int(number: Mapping[str, Any]) -> int:
    if "as_int" not in number:
        raise UnsupportedModel("a stored tensor with an extent that is no number")
    return int(number["as_int"])
