"""Codecs of dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn, get_type_hints

from kernel_gen.codec.core import At, Codec, Convert, mismatch
from kernel_gen.errors import InvalidInput

CodecOf = Callable[[Any, str], Codec]
"""The codec of an annotation, whose forward references are looked up in a module."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    codec: Codec
    default: Any
    label: bool  # equality ignores it
    required: bool


@cache
def _fields(cls: Any, codec_of: CodecOf) -> tuple[_Field, ...]:
    hints = get_type_hints(cls)
    return tuple(
        _field(field, codec_of(hints[field.name], cls.__module__)) for field in _init_fields(cls)
    )


@cache
def _readers(cls: Any, codec_of: CodecOf) -> tuple[dict[str, Convert], frozenset[str]]:
    """How each field is read, and which fields must be there."""
    fields = _fields(cls, codec_of)
    required = frozenset(field.name for field in fields if field.required)
    return {field.name: field.codec.read for field in fields}, required


def _init_fields(cls: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.init]


def _field(field: dataclasses.Field[Any], codec: Codec) -> _Field:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    required = default is dataclasses.MISSING
    return _Field(field.name, codec, default, not field.compare, required)


def record(cls: Any, codec_of: CodecOf) -> Codec:
    """The fields of a dataclass; looked up at each use, so that types may contain themselves."""

    def write(value: Any) -> dict[str, Any]:
        return _write_fields(_fields(cls, codec_of), cls, value, labels=True)

    def bare(value: Any) -> dict[str, Any]:
        return _write_fields(_fields(cls, codec_of), cls, value, labels=False)

    def read(tree: Any) -> Any:
        return _read_fields(cls, codec_of, tree)

    return Codec(write, bare, read)


def _write_fields(
    fields: tuple[_Field, ...], cls: Any, value: Any, *, labels: bool
) -> dict[str, Any]:
    kind: Any = type(value)
    if kind is not cls:
        raise mismatch(f"a {cls.__name__}", value)
    found: dict[str, Any] = {}
    for field in fields:
        content = getattr(value, field.name)
        if (field.label and not labels) or _is_default(content, field):
            continue
        try:
            found[field.name] = (field.codec.write if labels else field.codec.bare)(content)
        except At as error:
            error.steps.append(f".{field.name}")
            raise
    return found


def _is_default(content: Any, field: _Field) -> bool:
    if field.required or type(content) is not type(field.default):
        return False
    if type(content) is float:
        return repr(content) == repr(field.default)  # tells -0.0 from 0.0
    return bool(content == field.default)


def _read_fields(cls: Any, codec_of: CodecOf, tree: Any) -> Any:
    if type(tree) is not dict:
        raise mismatch(f"an object ({cls.__name__})", tree)
    readers, required = _readers(cls, codec_of)
    if not (tree.keys() >= required and tree.keys() <= readers.keys()):
        _refuse_fields(cls, _fields(cls, codec_of), tree)
    found: dict[str, Any] = {}
    name = ""
    try:
        for name, content in tree.items():
            found[name] = readers[name](content)
    except At as error:
        error.steps.append(f".{name}")
        raise
    try:
        return cls(**found)
    except InvalidInput as error:
        raise At(error) from None


def _refuse_fields(cls: Any, fields: tuple[_Field, ...], tree: dict[str, Any]) -> NoReturn:
    """Says which required field is missing, or which one is unknown."""
    for field in fields:
        if field.required and field.name not in tree:
            raise At(InvalidInput(f"{cls.__name__} lacks {field.name!r}"))
    unknown = sorted(set(tree) - {field.name for field in fields})
    raise At(InvalidInput(f"{cls.__name__} has no field {str(unknown[:5])[:200]}"))
