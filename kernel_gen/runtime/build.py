"""Building kernels: find a C++ compiler, compile each kernel once, link them, cache by content.

A compiler that rejects a kernel, or takes too long, gives a `Failure`; only a missing compiler
raises (`Unavailable`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.target import Target
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.records import Failure
from kernel_gen.runtime.compiler_process import run_compiler
from kernel_gen.runtime.flags import compile_flags, link_flags
from kernel_gen.runtime.plan import Artifact

_CANDIDATES = ("g++", "clang++", "c++")


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: command, version line, and the folder of the objects built so far.

    `openmp` tells whether it can build thread teams; without, kernels run on one thread.
    """

    command: tuple[str, ...]
    version: str
    folder: Path
    openmp: bool = True
    timeout_seconds: float = 120.0

    @staticmethod
    def find(
        folder: Path, *, command: str | None = None, timeout_seconds: float = 120.0
    ) -> Compiler:
        """The compiler `command`, else $CXX, g++, clang++, c++, else the ziglang package.

        Raises Unavailable, saying what to install.
        """
        found = _find_command(command)
        if found is None:
            raise Unavailable(
                "no C++ compiler: install g++ or clang, set CXX, or install the package ziglang"
            )
        version = _version(found)
        folder.mkdir(parents=True, exist_ok=True)
        return Compiler(found, version, folder, _has_openmp(found, version), timeout_seconds)

    def compile(self, sources: Sequence[KernelSource], target: Target) -> Artifact | Failure:
        """One shared object with the entry points of all `sources`, each compiled for itself and
        kept: a plan of kernels that a search has tried is linked only."""
        if not sources:
            raise InvalidInput("compile: no sources")
        objects: list[Path] = []
        for source in sources:
            built = self.object(source, target)
            if isinstance(built, Failure):
                return built
            objects.append(built)
        return self.link(objects)

    def object(self, source: KernelSource, target: Target) -> Path | Failure:
        """The object file of one kernel, for `link`."""
        text = source.files[0][1]
        flags = (*compile_flags(target, openmp=self.openmp), "-c")
        path = self.path(self._key(text, flags)).with_suffix(".o")
        return self._made(path, text, flags) or path

    def link(self, objects: Sequence[Path]) -> Artifact | Failure:
        """One shared object of object files."""
        flags = link_flags(openmp=self.openmp)
        path = self.path(self._key("\n".join(part.name for part in objects), flags))
        return self._made(path, None, (*map(str, objects), *flags)) or Artifact.read(path)

    def compile_texts(
        self, files: Sequence[tuple[str, str]], target: Target, extra_flags: Sequence[str] = ()
    ) -> Artifact | Failure:
        """One shared object of (name, text) files that are joined into one translation unit."""
        text = "\n".join(text for _, text in files)
        flags = (*compile_flags(target, openmp=self.openmp), *extra_flags)
        path = self.path(self._key(text, flags))
        links = link_flags(openmp=self.openmp)
        return self._made(path, text, flags, links) or Artifact.read(path)

    def path(self, key: str) -> Path:
        """Where the object of a content key lies."""
        return self.folder / key[:2] / f"k{key[:40]}.so"

    def path_of(self, artifact: Artifact) -> Path:
        """Where an artifact built by this compiler lies."""
        return self.folder / artifact.name[1:3] / artifact.name

    def _key(self, text: str, flags: Sequence[str]) -> str:
        state = hashlib.sha256("\0".join([self.version, *flags]).encode())
        state.update(b"\0" + text.encode())
        return state.hexdigest()

    def _made(
        self, path: Path, text: str | None, flags: Sequence[str], links: Sequence[str] = ()
    ) -> Failure | None:
        """Sees to it that the file at `path` exists: `text`, if any, compiled with these flags."""
        if path.exists():
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        with Scratch("kernel", self.folder, ".gaf-build-") as work:
            source, built = work / "kernels.cpp", work / "built"
            if text is not None:
                source.write_text(text)
                flags = (*flags, str(source))
            command = [*self.command, *flags, "-o", str(built), *links]
            failure = run_compiler(command, work, self.timeout_seconds)
            if failure is None:
                os.replace(built, path)  # atomic: readers see the old file, none, or all of it
        return failure


def _find_command(command: str | None) -> tuple[str, ...] | None:
    wished = [command] if command else [os.environ.get("CXX", ""), *_CANDIDATES]
    for name in wished:
        path = shutil.which(name) if name else None
        if path:
            return (path,)
    if command is None and importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "c++")
    return None


def _has_openmp(command: tuple[str, ...], version: str) -> bool:
    """Whether thread teams link: g++ brings its runtime, clang's is a package of its own (libomp),
    and ziglang's wheel has none."""
    if "ziglang" in command:
        return False
    if "clang" not in version:
        return True
    with Scratch("openmp") as folder:
        empty = ("-fopenmp", "-shared", "-x", "c++", os.devnull, "-o", str(folder / "empty.so"))
        done = subprocess.run([*command, *empty], capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def _version(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"compiler {' '.join(command)} does not run: {error}") from error
    return (done.stdout.splitlines() or ["unknown"])[0]
