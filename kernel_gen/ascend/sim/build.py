"""Compiling kernels for the simulator: the runtime once per machine, each kernel against it.

A kernel's sources are compiled as they are, with `include/` on the search path, into a shared
object that finds the runtime by an absolute path. The header is read once per machine, too: half
of the work on a kernel is reading it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import platformdirs

from kernel_gen.errors import InvalidInput
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target

_HERE = Path(__file__).parent
_INCLUDE = _HERE / "include"
_RUNTIME = _HERE / "runtime"
_TIMEOUT_SECONDS = 120.0
_MESSAGE_CHARS = 4000
_WARNINGS = ("-Wall", "-Wextra")
# A kernel is calls of the runtime, where the work is done: optimising it takes a few tenths of a
# second of a build and gives back milliseconds of a run.
_KERNEL_FLAGS = ("-std=c++17", "-O0", "-fPIC", *_WARNINGS)
_HEADER = "kernel_operator.h"


class BuildError(InvalidInput):
    """Sources that the compiler refuses; the message is the compiler's."""


def build(
    sources: Mapping[str, str], workdir: Path, timeout_seconds: float = _TIMEOUT_SECONDS
) -> Path:
    """The shared object of a kernel: all `.cpp` files of `sources` (file name to text) together.

    Other files (headers) are written beside them into `workdir`. Raises BuildError with the
    compiler's message, Unavailable without a compiler.
    """
    units = [name for name in sources if name.endswith((".cpp", ".cc"))]
    if not units:
        raise InvalidInput(f"no .cpp file among {sorted(sources)}")
    workdir.mkdir(parents=True, exist_ok=True)
    for name, text in sources.items():
        if Path(name).name != name:
            raise InvalidInput(f"source file name {name!r} has a folder")
        (workdir / name).write_text(text, encoding="utf-8")
    runtime = runtime_library()
    library = workdir / "libkernel.so"
    command = [
        *_compiler(), *_KERNEL_FLAGS, "-shared", *_includes(), "-I.", *sorted(units),
        "-o", library.name, str(runtime), f"-Wl,-rpath,{runtime.parent}",
        "-Wl,--no-undefined",
    ]  # fmt: skip
    _run(command, workdir, timeout_seconds)
    return library


def compile_warnings(sources: Mapping[str, str], workdir: Path) -> str:
    """What the compiler has to say about the sources at -Wall -Wextra; empty where nothing."""
    build(sources, workdir)
    units = sorted(name for name in sources if name.endswith((".cpp", ".cc")))
    command = [*_compiler(), *_KERNEL_FLAGS, "-fsyntax-only", *_includes(), *units]
    return _run(command, workdir)


@cache
def runtime_library() -> Path:
    """The simulator's runtime, built at the first call on this machine. Raises Unavailable."""
    flags = ("-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno",
             "-fno-trapping-math", "-fPIC", *_WARNINGS, *_isa_flags())  # fmt: skip
    files = sorted(_RUNTIME.glob("*.cpp"))
    library = _folder() / f"libascendsim-{_digest(flags)}.so"
    with _first_of_machine(library) as work:
        if work is not None:
            os.replace(_build_runtime(files, flags, work), library)
    return library


def _includes() -> tuple[str, ...]:
    return (f"-I{_precompiled()}", f"-I{_INCLUDE}")


@cache
def _precompiled() -> Path:
    """The folder of the kernels' header as the compiler has read it.

    GCC takes what it finds there if it was made by itself with the same flags, and the header
    otherwise. Compilers that know no such files take the header.
    """
    folder = _folder() / f"header-{_digest((*_KERNEL_FLAGS, _found().version, str(_INCLUDE)))}"
    with _first_of_machine(folder) as work:
        if work is not None:
            (work / "made").mkdir()
            (work / _HEADER).write_text(f'#include "{_INCLUDE / _HEADER}"\n', encoding="utf-8")
            target = work / "made" / f"{_HEADER}.gch"
            command = [*_compiler(), *_KERNEL_FLAGS, "-x", "c++-header", _HEADER, "-o", str(target)]
            with suppress(BuildError):
                _run(command, work)
            os.replace(work / "made", folder)
    return folder


def _folder() -> Path:
    """What is built once per machine lies here."""
    folder = platformdirs.user_cache_path("graph-autofusion") / "ascend-sim"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _first_of_machine(built: Path) -> Iterator[Path | None]:
    """A folder to make `built` in; None where it is there, perhaps since another process, which
    was waited for, has made it."""
    if built.exists():
        yield None
        return
    with (
        open(built.with_name(f".{built.name}.lock"), "wb") as lock,
        Scratch("simulator", built.parent, ".gaf-build-") as work,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield None if built.exists() else work


def _build_runtime(files: Sequence[Path], flags: Sequence[str], work: Path) -> Path:
    objects = [work / f"{file.stem}.o" for file in files]
    commands = [
        [*_compiler(), *flags, "-c", str(file), "-o", str(target)]
        for file, target in zip(files, objects, strict=True)
    ]
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda command: _run(command, work), commands))
    built = work / "runtime.so"
    links = [str(path) for path in objects]
    _run([*_compiler(), "-shared", *links, "-o", str(built), "-Wl,--no-undefined", "-lm"], work)
    return built


def _digest(flags: Sequence[str]) -> str:
    state = hashlib.sha256("\0".join([*_compiler(), *flags]).encode())
    for path in sorted([*_RUNTIME.iterdir(), *_INCLUDE.rglob("*.h")]):
        if path.is_file():
            state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()[:24]


def _compiler() -> tuple[str, ...]:
    return _found().command


@cache
def _found() -> Compiler:
    with Scratch("compiler") as folder:
        return Compiler.find(folder)


def _isa_flags() -> tuple[str, ...]:
    """Up to AVX2: half conversions in hardware where the host has them."""
    return ("-march=x86-64-v3",) if host_target().isa in ("x86-64-v3", "x86-64-v4") else ()


def _run(command: Sequence[str], folder: Path, timeout_seconds: float = _TIMEOUT_SECONDS) -> str:
    """What the compiler wrote to stderr. Raises BuildError where it fails."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=timeout_seconds,
            env=environment, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"no object after {timeout_seconds:g} s") from error
    if done.returncode != 0:
        message = done.stderr[:_MESSAGE_CHARS]
        raise BuildError(message or f"compiler: exit status {done.returncode}")
    return done.stderr
