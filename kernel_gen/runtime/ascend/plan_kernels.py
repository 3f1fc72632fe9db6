"""The kernels of a plan for an NPU, as both kinds of them load and call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kernel_gen.runtime.layout import kernel_writes
from kernel_gen.runtime.plan import Artifact, Kernel, Plan

Loaded = TypeVar("Loaded")


def each_loaded(plan: Plan, load: Callable[[Kernel, Artifact], Loaded]) -> list[Loaded]:
    """All kernels of a plan in order; those of one source are loaded once."""
    digests = list(dict.fromkeys(kernel.source.digest for kernel in plan.kernels))
    objects = dict(zip(digests, plan.artifacts, strict=True))
    loaded: dict[str, Loaded] = {}
    for kernel in plan.kernels:
        digest = kernel.source.digest
        if digest not in loaded:
            loaded[digest] = load(kernel, objects[digest])
    return [loaded[kernel.source.digest] for kernel in plan.kernels]


def writes_nothing(plan: Plan, kernel: Kernel) -> bool:
    """Whether all that a kernel writes is empty: it need not run."""
    return all(plan.program.type_of(value).elems == 0 for value in kernel_writes(kernel))
