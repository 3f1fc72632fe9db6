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

import hashlib
import json
from typing import Any, TypeVar

from kernel_gen.codec.annotations import codec_of
from kernel_gen.codec.core import At
from kernel_gen.errors import InvalidInput

MAX_DEPTH = 100  # nesting of the JSON text; everything of the project stays below 40

T = TypeVar("T")


def to_json(value: object, *, labels: bool = True) -> str:
    """Canonical JSON of a dataclass instance.

    `labels=False` leaves out the fields that equality ignores (display names). Raises InvalidInput
    if a field holds a value its annotation does not allow.
    """
    cls: Any = type(value)
    codec = codec_of(cls, "")
    try:
        tree = (codec.write if labels else codec.bare)(value)
        return json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except At as error:
        raise _located(cls, error) from None
    except RecursionError:
        raise InvalidInput(f"{cls.__name__}: nested too deeply to write") from None


def from_json(cls: type[T], text: str | bytes) -> T:
    """The value that `to_json` wrote; raises InvalidInput (or the subclass that the type itself
    raises) naming the place, as in `Graph.nodes[3].attrs: …`."""
    return from_tree(cls, parse(cls, text))


def from_tree(cls: type[T], tree: Any) -> T:
    """The value of a tree that `parse` gave; raises as `from_json` does."""
    hint: Any = cls
    try:
        value: T = codec_of(hint, "").read(tree)
    except At as error:
        raise _located(cls, error) from None
    return value


def digest(value: object) -> str:
    """SHA-256 (hexadecimal) of the canonical JSON without labels."""
    return hashlib.sha256(to_json(value, labels=False).encode()).hexdigest()


def _located(cls: type, error: At) -> InvalidInput:
    place = "".join(reversed(error.steps))
    return type(error.cause)(f"{cls.__name__}{place}: {error.cause}")


def parse(cls: type, text: str | bytes) -> Any:
    """The JSON tree of a `cls`, whose fields are not looked at; raises InvalidInput."""
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
