"""What converting to and from JSON trees is made of: a codec, and a mismatch with its place."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from kernel_gen.errors import InvalidInput

SCALARS = (bool, int, float, str, type(None))
Convert = Callable[[Any], Any]


class At(Exception):
    """A mismatch on its way up: the reason, and the place, innermost step first."""

    def __init__(self, cause: InvalidInput, step: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.steps = [step] if step else []


@dataclasses.dataclass(frozen=True, slots=True)
class Codec:
    """How one annotation is written and read. `bare` writes without labels (for digests)."""

    write: Convert
    bare: Convert
    read: Convert


def mismatch(expected: str, value: object) -> At:
    """The mismatch of a value that is not what was expected."""
    return At(InvalidInput(f"expected {expected}, got {_short(value)}"))


def _short(value: object) -> str:
    text = f"{type(value).__name__} {value!r}" if isinstance(value, SCALARS) else ""
    return (text or type(value).__name__)[:120]
