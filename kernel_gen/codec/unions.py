"""Codecs of unions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_origin

from kernel_gen.codec.core import SCALARS, Codec, Convert, mismatch
from kernel_gen.codec.plain import scalar
from kernel_gen.codec.records import CodecOf, record


def union(args: tuple[Any, ...], module: str, codec_of: CodecOf) -> Codec:
    """One of some scalars, of some dataclasses (tagged if there are several), or another form."""
    scalars = tuple(arg for arg in args if arg in SCALARS)
    classes = [arg for arg in args if isinstance(arg, type) and dataclasses.is_dataclass(arg)]
    records = {cls.__name__: record(cls, codec_of) for cls in classes}
    others = [arg for arg in args if arg not in SCALARS and not dataclasses.is_dataclass(arg)]
    if len(others) > 1 or (others and str in scalars and get_origin(others[0]) is None):
        raise TypeError(f"ambiguous in JSON: {args}")
    plain = scalar(scalars)
    other = codec_of(others[0], module) if others else None
    if len(records) > 1:
        _refuse_kind_fields(classes)

    def write_by(labels: bool) -> Convert:
        def write(value: Any) -> Any:
            name = type(value).__name__
            if name in records and dataclasses.is_dataclass(value):
                tree = (records[name].write if labels else records[name].bare)(value)
                return {"kind": name, **tree} if len(records) > 1 else tree
            if type(value) in scalars or other is None:
                return plain.write(value)
            return (other.write if labels else other.bare)(value)

        return write

    def read(tree: Any) -> Any:
        if type(tree) is dict and records and "float" not in tree:
            return _read_tagged(records, tree)
        if other is not None and (type(tree) is list or (type(tree) is str and str not in scalars)):
            return other.read(tree)
        return plain.read(tree)

    return Codec(write_by(True), write_by(False), read)


def _refuse_kind_fields(classes: list[Any]) -> None:
    for cls in classes:
        if "kind" in {field.name for field in dataclasses.fields(cls)}:
            raise TypeError(f"{cls} has a field 'kind', which tags unions in JSON")


def _read_tagged(records: Mapping[str, Codec], tree: dict[str, Any]) -> Any:
    if len(records) == 1:
        return next(iter(records.values())).read(tree)
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in records:
        raise mismatch(f"kind {' or '.join(records)}", kind)
    return records[kind].read({key: item for key, item in tree.items() if key != "kind"})
