"""Attributes of a node, read with their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kernel_gen.errors import InvalidGraph
from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr, Node

Call = Callable[..., Any]
Maker = Callable[["Attrs"], Call]


class Attrs:
    """Typed reading of a node's attributes."""

    def __init__(self, node: Node) -> None:
        self.op = node.op
        self._values = dict(node.attrs)
        self.operands = len(node.inputs)

    def raw(self, key: str) -> Attr:
        return self._values[key]

    def ints(self, key: str) -> tuple[int, ...]:
        value = self._values[key]
        if not isinstance(value, tuple):
            raise InvalidGraph(f"{self.op}: {key} is {value!r}, expected integers")
        found = tuple(item for item in value if isinstance(item, int))
        if len(found) != len(value):
            raise InvalidGraph(f"{self.op}: {key} is {value!r}, expected integers")
        return found

    def int(self, key: str) -> int:
        value = self._values[key]
        if not isinstance(value, int):
            raise InvalidGraph(f"{self.op}: {key} is {value!r}, expected an integer")
        return value

    def float(self, key: str) -> float:
        value = self._values[key]
        if not isinstance(value, int | float):
            raise InvalidGraph(f"{self.op}: {key} is {value!r}, expected a number")
        return value

    def text(self, key: str) -> str:
        return str(self._values[key])

    def flag(self, key: str) -> bool:
        return bool(self._values.get(key, False))

    def dtype(self) -> torch.dtype:
        return to_torch(DType(self.text("dtype")))
