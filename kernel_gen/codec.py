"""Canonical JSON of the project's frozen dataclasses, typed and validated on the way back.

One rule per kind of annotation:

    dataclass          object of its fields; fields that hold their default are left out
    A | B (dataclasses) the same object with the class name under "kind"
    tuple, list        array
    dict[str, T]       object
    StrEnum            its value
    bytes              base64 text
    float              number; {"float": "inf" | "-inf" | "nan"} for the values JSON lacks

Keys are sorted and no space is written, so equal values have equal text in every process and on
every platform. Leaving defaults out lets a type grow a field without changing stored digests.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
import math
import sys
import types
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, ForwardRef, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from kernel_gen.errors import InvalidInput

MAX_DEPTH = 100  # nesting of the JSON text; everything of the project stays below 40
_SCALARS = (bool, int, float, str, type(None))
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

T = TypeVar("T")
Convert = Callable[[Any], Any]


class _At(Exception):
    """A mismatch on its way up: the reason, and the place, innermost step first."""

    def __init__(self, cause: InvalidInput, step: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.steps = [step] if step else []


@dataclasses.dataclass(frozen=True, slots=True)
class _Codec:
    """How one annotation is written and read. `bare` writes without labels (for digests)."""

    write: Convert
    bare: Convert
    read: Convert


def to_json(value: object, *, labels: bool = True) -> str:
    """Canonical JSON of a dataclass instance.

    `labels=False` leaves out the fields that equality ignores (display names). Raises InvalidInput
    if a field holds a value its annotation does not allow.
    """
    cls: Any = type(value)
    codec = _codec(cls, "")
    try:
        tree = (codec.write if labels else codec.bare)(value)
        return json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except _At as error:
        raise _located(cls, error) from None
    except RecursionError:
        raise InvalidInput(f"{cls.__name__}: nested too deeply to write") from None


def from_json(cls: type[T], text: str | bytes) -> T:
    """The value that `to_json` wrote; raises InvalidInput (or the subclass that the type itself
    raises) naming the place, as in `Graph.nodes[3].attrs: …`."""
    tree = _parse(cls, text)
    hint: Any = cls
    try:
        value: T = _codec(hint, "").read(tree)
    except _At as error:
        raise _located(cls, error) from None
    return value


def digest(value: object) -> str:
    """SHA-256 (hexadecimal) of the canonical JSON without labels."""
    return hashlib.sha256(to_json(value, labels=False).encode()).hexdigest()


def _located(cls: type, error: _At) -> InvalidInput:
    place = "".join(reversed(error.steps))
    return type(error.cause)(f"{cls.__name__}{place}: {error.cause}")


def _parse(cls: type, text: str | bytes) -> Any:
    try:
        tree = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidInput(f"{cls.__name__}: JSON is nested too deeply") from None
    except InvalidInput as error:
        raise InvalidInput(f"{cls.__name__}: {error}") from None
    except ValueError as error:
        raise InvalidInput(f"{cls.__name__}: not JSON: {error}") from None
    _check_depth(cls, tree)
    return tree


def _no_constant(text: str) -> Any:
    raise InvalidInput(f"{text} is not JSON")


def _check_depth(cls: type, tree: Any) -> None:
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            if type(node) in (list, dict)
            for child in (node.values() if type(node) is dict else node)
            if type(child) in (list, dict)
        ]
        if not level:
            return
    raise InvalidInput(f"{cls.__name__}: JSON is nested deeper than {MAX_DEPTH}")


@cache
def _codec(hint: Any, module: str) -> _Codec:
    """The codec of an annotation; `module` is where its forward references are looked up."""
    if isinstance(hint, str | ForwardRef):
        name = hint if isinstance(hint, str) else hint.__forward_arg__
        return _lazy(vars(sys.modules[module])[name], module)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _union(get_args(hint), module)
    if origin in (tuple, list):
        return _sequence(origin, get_args(hint), module)
    if origin in (dict, Mapping):
        return _mapping(_codec(get_args(hint)[1], module))
    if dataclasses.is_dataclass(hint):
        return _record(hint)
    if hint in _SCALARS:
        return _scalar((hint,))
    if hint is bytes:
        return _Codec(_write_bytes, _write_bytes, _read_bytes)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _enum(hint)
    raise TypeError(f"no JSON form for {hint!r}")


def _lazy(hint: Any, module: str) -> _Codec:
    """A codec looked up at each use: breaks the cycle of a recursive alias."""
    return _Codec(
        lambda value: _codec(hint, module).write(value),
        lambda value: _codec(hint, module).bare(value),
        lambda tree: _codec(hint, module).read(tree),
    )


def _mismatch(expected: str, value: object) -> _At:
    return _At(InvalidInput(f"expected {expected}, got {_short(value)}"))


def _short(value: object) -> str:
    text = f"{type(value).__name__} {value!r}" if isinstance(value, _SCALARS) else ""
    return (text or type(value).__name__)[:120]


def _write_float(value: float) -> Any:
    if math.isfinite(value):
        return float(value)
    return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}


def _scalar(kinds: tuple[type, ...]) -> _Codec:
    """One of some scalar types. An int is accepted for a float where no int is allowed."""
    names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
    widen = float in kinds and int not in kinds

    def convert(value: Any) -> Any:
        kind = type(value)
        if kind is int and not -(2**63) <= value < 2**64:
            raise _mismatch("an integer of 64 bits", value)
        if kind is int and widen:
            return float(value)
        if kind not in kinds:
            raise _mismatch(names, value)
        return value

    def write(value: Any) -> Any:
        value = convert(value)
        return _write_float(value) if type(value) is float else value

    def read(tree: Any) -> Any:
        if type(tree) is dict and float in kinds and len(tree) == 1:
            found = _NON_FINITE.get(str(tree.get("float")))
            if found is not None:
                return found
        return convert(tree)

    return _Codec(write, write, read)


def _write_bytes(value: Any) -> str:
    if not isinstance(value, bytes):
        raise _mismatch("bytes", value)
    return base64.b64encode(value).decode()


def _read_bytes(tree: Any) -> bytes:
    if not isinstance(tree, str):
        raise _mismatch("base64 text", tree)
    try:
        return base64.b64decode(tree, validate=True)
    except (binascii.Error, ValueError):
        raise _mismatch("base64 text", tree) from None


def _enum(cls: type[StrEnum]) -> _Codec:
    members = {member.value: member for member in cls}

    def write(value: Any) -> str:
        if not isinstance(value, cls):
            raise _mismatch(f"a {cls.__name__}", value)
        return value.value

    def read(tree: Any) -> Any:
        if not isinstance(tree, str) or tree not in members:
            raise _mismatch(f"one of {', '.join(members)}", tree)
        return members[tree]

    return _Codec(write, write, read)


def _sequence(origin: type, args: tuple[Any, ...], module: str) -> _Codec:
    if origin is list or (len(args) == 2 and args[1] is Ellipsis):
        item = _codec(args[0], module)
        return _Codec(
            lambda value: _each(item.write, value, origin),
            lambda value: _each(item.bare, value, origin),
            lambda tree: origin(_each(item.read, tree, list)),
        )
    items = [_codec(arg, module) for arg in args]
    return _Codec(
        lambda value: _zipped([item.write for item in items], value, tuple),
        lambda value: _zipped([item.bare for item in items], value, tuple),
        lambda tree: tuple(_zipped([item.read for item in items], tree, list)),
    )


def _each(convert: Convert, value: Any, expected: Any) -> list[Any]:
    if not isinstance(value, expected):
        raise _mismatch("a list", value)
    found: list[Any] = []
    try:
        for element in value:
            found.append(convert(element))
    except _At as error:
        error.steps.append(f"[{len(found)}]")
        raise
    return found


def _zipped(converts: list[Convert], value: Any, expected: Any) -> list[Any]:
    if not isinstance(value, expected):
        raise _mismatch("a list", value)
    elements: list[Any] = list(value)
    if len(elements) != len(converts):
        raise _At(InvalidInput(f"expected a list of {len(converts)}, got {len(elements)}"))
    found: list[Any] = []
    try:
        for convert, element in zip(converts, elements, strict=True):
            found.append(convert(element))
    except _At as error:
        error.steps.append(f"[{len(found)}]")
        raise
    return found


def _mapping(item: _Codec) -> _Codec:
    def over(convert: Convert, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(type(key) is str for key in value):
            raise _mismatch("an object", value)
        return {key: convert(element) for key, element in value.items()}

    return _Codec(
        lambda value: over(item.write, value),
        lambda value: over(item.bare, value),
        lambda tree: over(item.read, tree),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    codec: _Codec
    default: Any
    label: bool  # equality ignores it
    required: bool


@cache
def _fields(cls: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(cls)
    return tuple(_field(field, hints[field.name], cls.__module__) for field in _init_fields(cls))


@cache
def _readers(cls: Any) -> tuple[dict[str, Convert], frozenset[str]]:
    """How each field is read, and which fields must be there."""
    fields = _fields(cls)
    required = frozenset(field.name for field in fields if field.required)
    return {field.name: field.codec.read for field in fields}, required


def _init_fields(cls: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.init]


def _field(field: dataclasses.Field[Any], hint: Any, module: str) -> _Field:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    required = default is dataclasses.MISSING
    return _Field(field.name, _codec(hint, module), default, not field.compare, required)


def _record(cls: Any) -> _Codec:
    """The fields of a dataclass; looked up at each use, so that types may contain themselves."""

    def write(value: Any) -> dict[str, Any]:
        return _write_fields(cls, value, labels=True)

    def bare(value: Any) -> dict[str, Any]:
        return _write_fields(cls, value, labels=False)

    def read(tree: Any) -> Any:
        return _read_fields(cls, tree)

    return _Codec(write, bare, read)


def _write_fields(cls: Any, value: Any, *, labels: bool) -> dict[str, Any]:
    kind: Any = type(value)
    if kind is not cls:
        raise _mismatch(f"a {cls.__name__}", value)
    found: dict[str, Any] = {}
    for field in _fields(cls):
        content = getattr(value, field.name)
        if (field.label and not labels) or _is_default(content, field):
            continue
        try:
            found[field.name] = (field.codec.write if labels else field.codec.bare)(content)
        except _At as error:
            error.steps.append(f".{field.name}")
            raise
    return found


def _is_default(content: Any, field: _Field) -> bool:
    if field.required or type(content) is not type(field.default):
        return False
    if type(content) is float:
        return repr(content) == repr(field.default)  # tells -0.0 from 0.0
    return bool(content == field.default)


def _read_fields(cls: Any, tree: Any) -> Any:
    if type(tree) is not dict:
        raise _mismatch(f"an object ({cls.__name__})", tree)
    readers, required = _readers(cls)
    if not (tree.keys() >= required and tree.keys() <= readers.keys()):
        _refuse_fields(cls, tree)
    found: dict[str, Any] = {}
    name = ""
    try:
        for name, content in tree.items():
            found[name] = readers[name](content)
    except _At as error:
        error.steps.append(f".{name}")
        raise
    try:
        return cls(**found)
    except InvalidInput as error:
        raise _At(error) from None


def _refuse_fields(cls: Any, tree: dict[str, Any]) -> NoReturn:
    """Says which required field is missing, or which one is unknown."""
    for field in _fields(cls):
        if field.required and field.name not in tree:
            raise _At(InvalidInput(f"{cls.__name__} lacks {field.name!r}"))
    unknown = sorted(set(tree) - {field.name for field in _fields(cls)})
    raise _At(InvalidInput(f"{cls.__name__} has no field {str(unknown[:5])[:200]}"))


def _union(args: tuple[Any, ...], module: str) -> _Codec:
    scalars = tuple(arg for arg in args if arg in _SCALARS)
    classes = [arg for arg in args if isinstance(arg, type) and dataclasses.is_dataclass(arg)]
    records = {cls.__name__: _record(cls) for cls in classes}
    others = [arg for arg in args if arg not in _SCALARS and not dataclasses.is_dataclass(arg)]
    if len(others) > 1 or (others and str in scalars and get_origin(others[0]) is None):
        raise TypeError(f"ambiguous in JSON: {args}")
    scalar = _scalar(scalars)
    other = _codec(others[0], module) if others else None
    if len(records) > 1:
        _refuse_kind_fields(classes)

    def write_by(labels: bool) -> Convert:
        def write(value: Any) -> Any:
            name = type(value).__name__
            if name in records and dataclasses.is_dataclass(value):
                tree = (records[name].write if labels else records[name].bare)(value)
                return {"kind": name, **tree} if len(records) > 1 else tree
            if type(value) in scalars or other is None:
                return scalar.write(value)
            return (other.write if labels else other.bare)(value)

        return write

    def read(tree: Any) -> Any:
        if type(tree) is dict and records and "float" not in tree:
            return _read_tagged(records, tree)
        if other is not None and (type(tree) is list or (type(tree) is str and str not in scalars)):
            return other.read(tree)
        return scalar.read(tree)

    return _Codec(write_by(True), write_by(False), read)


def _refuse_kind_fields(classes: list[Any]) -> None:
    for cls in classes:
        if "kind" in {field.name for field in dataclasses.fields(cls)}:
            raise TypeError(f"{cls} has a field 'kind', which tags unions in JSON")


def _read_tagged(records: Mapping[str, _Codec], tree: dict[str, Any]) -> Any:
    if len(records) == 1:
        return next(iter(records.values())).read(tree)
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in records:
        raise _mismatch(f"kind {' or '.join(records)}", kind)
    return records[kind].read({key: item for key, item in tree.items() if key != "kind"})
