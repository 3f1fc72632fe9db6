"""What a rule sees of a node: its attributes and its operands.

An operand is a tensor, or a `Known` array: an initialiser of a few integers, or what was computed
from such and from shapes. Rules that need numbers (axes, sizes, pads) take them from known ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gen.errors import UnsupportedModel

Known = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Items:
    """A sequence of ONNX: tensors or known arrays, of any shapes."""

    values: tuple[torch.Tensor | Known, ...] = ()


Value = torch.Tensor | Known | Items
Result = torch.Tensor | Known | Items | Sequence["torch.Tensor | None"]


@dataclass(frozen=True, slots=True)
class Call:
    """One node of a file at work: `operands` has None where an optional input is left out."""

    op: str
    name: str
    opset: int
    attrs: Mapping[str, Any]
    operands: tuple[Value | None, ...]
    outputs: int

    def __len__(self) -> int:
        return len(self.operands)

    def tensor(self, position: int) -> torch.Tensor:
        """The operand as a tensor; raises UnsupportedModel where it is left out."""
        found = self.optional(position)
        if found is None:
            raise self.refuse(f"input {position} is missing")
        return found

    def optional(self, position: int) -> torch.Tensor | None:
        value = self.operands[position] if position < len(self.operands) else None
        return None if value is None else self._as_tensor(value, position)

    def _as_tensor(self, value: Value, position: int) -> torch.Tensor:
        if isinstance(value, Items):
            raise self.refuse(f"input {position} is a sequence")
        return as_tensor(value) if isinstance(value, np.ndarray) else value

    def items(self, position: int) -> Items:
        """The operand as a sequence."""
        value = self.operands[position] if position < len(self.operands) else None
        if not isinstance(value, Items):
            raise self.refuse(f"input {position} is no sequence")
        return value

    def tensors(self) -> list[torch.Tensor]:
        return [self.tensor(position) for position in range(len(self.operands))]

    def has(self, position: int) -> bool:
        return position < len(self.operands) and self.operands[position] is not None

    def known(self, position: int, what: str) -> Known:
        """The operand's values, which must not depend on the data; `what` names it for people."""
        value = self.operands[position] if position < len(self.operands) else None
        if value is None:
            raise self.refuse(f"its {what} (input {position}) is missing")
        if isinstance(value, np.ndarray):
            return value
        if type(value) is torch.Tensor or isinstance(value, torch.nn.Parameter):
            plain = value.detach().cpu()
            return (plain.float() if plain.dtype is torch.bfloat16 else plain).numpy()
        raise self.refuse(f"its {what} (input {position}) depends on the data")

    def ints(self, position: int, what: str) -> list[int]:
        return [int(number) for number in self.known(position, what).reshape(-1)]

    def attr(self, name: str, default: Any = None) -> Any:
        return self.attrs.get(name, default)

    def axes(self, position: int, since: int, what: str = "axes") -> list[int] | None:
        """Axes that are an attribute before opset `since` and an operand from then on."""
        if self.opset < since:
            found = self.attr(what)
            return None if found is None else [int(axis) for axis in found]
        return self.ints(position, what) if self.has(position) else None

    def refuse(self, reason: str) -> UnsupportedModel:
        """The error for a node that cannot be run, to be raised."""
        label = f"{self.op} {self.name!r}" if self.name else self.op
        return UnsupportedModel(f"ONNX node {label} (opset {self.opset}): {reason}")


def as_tensor(value: Known) -> torch.Tensor:
    """A tensor with a copy of the values."""
    if value.dtype.kind not in "biuf":
        raise UnsupportedModel(f"ONNX values of type {value.dtype} have no tensor type")
    return torch.tensor(value)


Rule = Callable[[Call], Result]
RULES: dict[str, Rule] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Registers a function as the meaning of ONNX operators."""

    def register(function: Rule) -> Rule:
        for op in ops:
            RULES[op] = function
        return function

    return register
