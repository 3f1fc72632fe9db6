"""Text of the device functions that generated kernels share, written for the public Ascend C API.

A kernel holds those that it calls, in the order of `FUNCTIONS`. Shapes: a *tile* has `rows` rows of
`pitch` lanes; `n` is its number of lanes, rounded up to whole comparisons. A *row vector* has one
element per row, a *column vector* one per column. `blocks` hold one 32 B block per row.
"""

from __future__ import annotations

import re

from kernel_gen.codegen.ascend.device.basics import BASICS
from kernel_gen.codegen.ascend.device.broadcasts import BROADCASTS
from kernel_gen.codegen.ascend.device.copies import COPIES
from kernel_gen.codegen.ascend.device.folds import FOLDS
from kernel_gen.codegen.ascend.device.fractals import FRACTALS

FUNCTIONS = BASICS | BROADCASTS | FOLDS | COPIES | FRACTALS
"""Text by name; a function comes after those that it calls."""


def needed(text: str) -> list[str]:
    """The functions that `text` calls, and those they call, in the order of `FUNCTIONS`."""
    found: set[str] = set()
    todo = [text]
    while todo:
        words = set(re.findall(r"\b[A-Z]\w+\b", todo.pop()))
        for name in words & FUNCTIONS.keys() - found:
            found.add(name)
            todo.append(FUNCTIONS[name])
    return [name for name in FUNCTIONS if name in found]
