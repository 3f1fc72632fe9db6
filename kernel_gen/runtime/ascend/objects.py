"""Objects of kernels for NPUs: each built once per content, whoever builds it."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from pathlib import Path

from kernel_gen.codegen.source import KernelSource
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.records import Failure
from kernel_gen.runtime.plan import Artifact


class ObjectStore(ABC):
    """A compiler that keeps what it has built, by what went into it."""

    __slots__ = ()

    @abstractmethod
    def place(self, source: KernelSource) -> tuple[Path, str, str]:
        """The folder of objects, the letter that their names start with, and all that an object
        depends on, as text."""

    @abstractmethod
    def built(self, source: KernelSource, work: Path) -> Path | Failure:
        """The object of one kernel, newly built in the empty folder `work`."""

    def compile(self, source: KernelSource) -> Artifact | Failure:
        """The object of one kernel; raises Unavailable without a compiler."""
        path = self.path(source)
        if not path.exists():
            failure = self._fill(source, path)
            if failure is not None:
                return failure
        return Artifact.read(path)

    def path(self, source: KernelSource) -> Path:
        """Where the object of a source lies once it is built."""
        folder, letter, text = self.place(source)
        key = hashlib.sha256(text.encode()).hexdigest()
        return folder / key[:2] / f"{letter}{key[:40]}.so"

    def _fill(self, source: KernelSource, path: Path) -> Failure | None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with Scratch("kernel", path.parents[1], ".gaf-build-") as work:
            made = self.built(source, work)
            if isinstance(made, Failure):
                return made
            os.replace(made, path)  # atomic: readers see none or all of it
        return None
