"""The product of a nest, found once: a search asks for it with each of a nest's schedules."""

from __future__ import annotations

import functools

from kernel_gen.codegen.cpu.matmul.normalise import normalise
from kernel_gen.codegen.cpu.matmul.problem import Problem, analyse
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import LoopNest

_KEPT = 256  # nests: more than one job tunes at a time


@functools.lru_cache(maxsize=_KEPT)
def analysed(nest: LoopNest) -> Problem | Refusal:
    """The problem of the nest as the template likes it (`normalise`), or why it is none."""
    return analyse(normalise(nest))
