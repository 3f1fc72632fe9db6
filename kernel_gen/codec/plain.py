"""Codecs of scalars, bytes and enums, and of what holds others: lists, tuples, mappings."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from kernel_gen.codec.core import At, Codec, Convert, mismatch
from kernel_gen.errors import InvalidInput

_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def scalar(kinds: tuple[type, ...]) -> Codec:
    """One of some scalar types. An int is accepted for a float where no int is allowed."""
    names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
    widen = float in kinds and int not in kinds

    def convert(value: Any) -> Any:
        kind = type(value)
        if kind is int and not -(2**63) <= value < 2**64:
            raise mismatch("an integer of 64 bits", value)
        if kind is int and widen:
            return float(value)
        if kind not in kinds:
            raise mismatch(names, value)
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

    return Codec(write, write, read)


def _write_float(value: float) -> Any:
    if math.isfinite(value):
        return float(value)
    return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}


def _write_bytes(value: Any) -> str:
    if not isinstance(value, bytes):
        raise mismatch("bytes", value)
    return base64.b64encode(value).decode()


def _read_bytes(tree: Any) -> bytes:
    if not isinstance(tree, str):
        raise mismatch("base64 text", tree)
    try:
        return base64.b64decode(tree, validate=True)
    except (binascii.Error, ValueError):
        raise mismatch("base64 text", tree) from None


BYTES = Codec(_write_bytes, _write_bytes, _read_bytes)


def enum(cls: type[StrEnum]) -> Codec:
    """A member, by its value."""
    members = {member.value: member for member in cls}

    def write(value: Any) -> str:
        if not isinstance(value, cls):
            raise mismatch(f"a {cls.__name__}", value)
        return value.value

    def read(tree: Any) -> Any:
        if not isinstance(tree, str) or tree not in members:
            raise mismatch(f"one of {', '.join(members)}", tree)
        return members[tree]

    return Codec(write, write, read)


def sequence(origin: type, item: Codec) -> Codec:
    """A list, or a tuple of any length."""
    return Codec(
        lambda value: _each(item.write, value, origin),
        lambda value: _each(item.bare, value, origin),
        lambda tree: origin(_each(item.read, tree, list)),
    )


def fixed(items: list[Codec]) -> Codec:
    """A tuple with a type for each place."""
    return Codec(
        lambda value: _zipped([item.write for item in items], value, tuple),
        lambda value: _zipped([item.bare for item in items], value, tuple),
        lambda tree: tuple(_zipped([item.read for item in items], tree, list)),
    )


def _each(convert: Convert, value: Any, expected: Any) -> list[Any]:
    if not isinstance(value, expected):
        raise mismatch("a list", value)
    found: list[Any] = []
    try:
        for element in value:
            found.append(convert(element))
    except At as error:
        error.steps.append(f"[{len(found)}]")
        raise
    return found


def _zipped(converts: list[Convert], value: Any, expected: Any) -> list[Any]:
    if not isinstance(value, expected):
        raise mismatch("a list", value)
    elements: list[Any] = list(value)
    if len(elements) != len(converts):
        raise At(InvalidInput(f"expected a list of {len(converts)}, got {len(elements)}"))
    found: list[Any] = []
    try:
        for convert, element in zip(converts, elements, strict=True):
            found.append(convert(element))
    except At as error:
        error.steps.append(f"[{len(found)}]")
        raise
    return found


def mapping(item: Codec) -> Codec:
    """An object whose keys are any text."""

    def over(convert: Convert, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(type(key) is str for key in value):
            raise mismatch("an object", value)
        return {key: convert(element) for key, element in value.items()}

    return Codec(
        lambda value: over(item.write, value),
        lambda value: over(item.bare, value),
        lambda tree: over(item.read, tree),
    )
