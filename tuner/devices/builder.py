"""Builds candidates in batches: several kernels per shared object, one compiler per core.

A candidate that does not compile is left out of its batch: it costs one failed trial. Nothing else
runs on the device's cores meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kernel_gen.codegen.source import KernelSource
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.plan import Artifact


@dataclass(frozen=True, slots=True)
class Built:
    """Where a kernel's shared object lies, or why there is none; the time it took to build."""

    path: str | None
    failure: Failure | None
    seconds: float


class Builder:
    """Compiles sources with `jobs` compilers side by side."""

    def __init__(self, compiler: Compiler, target: Target, jobs: int) -> None:
        self._compiler, self._target, self._jobs = compiler, target, max(1, jobs)

    def build(self, sources: Sequence[KernelSource]) -> list[Built]:
        """One result per source, in order. Equal entry points never share an object."""
        parts = _parts(sources, self._jobs)
        results: list[Built | None] = [None] * len(sources)
        with ThreadPoolExecutor(self._jobs) as pool:
            built = pool.map(lambda part: self._build([sources[i] for i in part]), parts)
            for part, outcomes in zip(parts, built, strict=True):
                for place, outcome in zip(part, outcomes, strict=True):
                    results[place] = outcome
        return [result for result in results if result is not None]

    def _build(self, sources: Sequence[KernelSource]) -> list[Built]:
        made = [self._object(source) for source in sources]
        objects = [found for found, _ in made if isinstance(found, Path)]
        start = time.monotonic()
        linked = self._compiler.link(objects) if objects else None
        share = (time.monotonic() - start) / len(sources)
        return [self._built(found, linked, seconds + share) for found, seconds in made]

    def _object(self, source: KernelSource) -> tuple[Path | Failure, float]:
        start = time.monotonic()
        found = self._compiler.object(source, self._target)
        return found, time.monotonic() - start

    def _built(
        self, found: Path | Failure, linked: Artifact | Failure | None, seconds: float
    ) -> Built:
        if isinstance(found, Failure):
            return Built(None, found, seconds)
        if isinstance(linked, Artifact):
            return Built(str(self._compiler.path_of(linked)), None, seconds)
        return Built(None, linked, seconds)


def _parts(sources: Sequence[KernelSource], jobs: int) -> list[list[int]]:
    """Positions dealt to `jobs` objects; a recurring entry point goes to an object of its own."""
    parts: list[list[int]] = [[] for _ in range(min(jobs, len(sources)))]
    extra: list[list[int]] = []
    seen: set[str] = set()
    for place, source in enumerate(sources):
        if source.entry in seen:
            extra.append([place])
        else:
            seen.add(source.entry)
            parts[place % len(parts)].append(place)
    return [part for part in parts + extra if part]
