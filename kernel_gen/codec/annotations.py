"""The codec of each annotation."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, ForwardRef, Union, get_args, get_origin

from kernel_gen.codec.core import SCALARS, Codec
from kernel_gen.codec.plain import BYTES, enum, fixed, mapping, scalar, sequence
from kernel_gen.codec.records import record
from kernel_gen.codec.unions import union


@cache
def codec_of(hint: Any, module: str) -> Codec:
    """The codec of an annotation; `module` is where its forward references are looked up."""
    if isinstance(hint, str | ForwardRef):
        name = hint if isinstance(hint, str) else hint.__forward_arg__
        return _lazy(vars(sys.modules[module])[name], module)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return union(get_args(hint), module, codec_of)
    if origin in (tuple, list):
        return _sequence(origin, get_args(hint), module)
    if origin in (dict, Mapping):
        return mapping(codec_of(get_args(hint)[1], module))
    if dataclasses.is_dataclass(hint):
        return record(hint, codec_of)
    if hint in SCALARS:
        return scalar((hint,))
    if hint is bytes:
        return BYTES
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return enum(hint)
    raise TypeError(f"no JSON form for {hint!r}")


def _lazy(hint: Any, module: str) -> Codec:
    """A codec looked up at each use: breaks the cycle of a recursive alias."""
    return Codec(
        lambda value: codec_of(hint, module).write(value),
        lambda value: codec_of(hint, module).bare(value),
        lambda tree: codec_of(hint, module).read(tree),
    )


def _sequence(origin: type, args: tuple[Any, ...], module: str) -> Codec:
    if origin is list or (len(args) == 2 and args[1] is Ellipsis):
        return sequence(origin, codec_of(args[0], module))
    return fixed([codec_of(arg, module) for arg in args])
