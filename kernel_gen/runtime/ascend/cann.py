"""CANN on this machine: where it lies, its compiler, and which chip an NPU is.

Found by the variables that CANN's own set-up script exports. A kernel is built from one unit that
includes the delivered files, so that its launch sees the kernel itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gen.ascend.chips import chip_names
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import DeviceFault, Unavailable
from kernel_gen.records import Failure
from kernel_gen.runtime.ascend.acl import open_acl
from kernel_gen.runtime.ascend.objects import ObjectStore
from kernel_gen.runtime.compiler_process import run_compiler

VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME")
SIMULATOR = "ascend-sim:910b3"
_COMPILERS = ("bisheng", "ccec")
_COMPILER_FOLDERS = ("bin", "tools/bisheng_compiler/bin", "compiler/ccec_compiler/bin")
_LIBRARY_FOLDERS = ("lib64", "runtime/lib64")
_ARCHITECTURE = "dav-2201"  # Atlas A2 and A3: all chips whose kernels we generate
_FLAGS = ("-xasc", f"--npu-arch={_ARCHITECTURE}", "-O2", "-std=c++17", "-fPIC", "-shared")
_PROBE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Toolkit:
    """An installed CANN: its folder, the kernel compiler and the ACL library."""

    home: Path
    compiler: Path
    library: Path

    @property
    def version(self) -> str:
        """The compiler's version line."""
        return _version(self.compiler)


def find_toolkit(environment: Mapping[str, str] = os.environ) -> Toolkit:
    """CANN as the environment names it. Raises Unavailable, saying what is missing."""
    named = next((environment[name] for name in VARIABLES if environment.get(name)), None)
    if named is None:
        raise Unavailable(f"no CANN here: none of {', '.join(VARIABLES)} is set{_instead()}")
    home = Path(named)
    compiler = _first(home, _COMPILER_FOLDERS, _COMPILERS)
    if compiler is None:
        raise Unavailable(f"CANN in {home} has no compiler ({' or '.join(_COMPILERS)}){_instead()}")
    library = _first(home, _LIBRARY_FOLDERS, ("libascendcl.so",))
    if library is None:
        raise Unavailable(f"CANN in {home} has no libascendcl.so{_instead()}")
    return Toolkit(home, compiler, library)


def chip_of(toolkit: Toolkit, device: int) -> str:
    """The chip of NPU `device`, as `kernel_gen.ascend.chips` names it.

    Asked in a process of its own: ACL does not survive a fork of a process that has used it.
    Raises Unavailable where there is no such NPU, or no description of its chip.
    """
    soc = _probed(toolkit.library, device)
    name = soc.lower().removeprefix("ascend").partition("-")[0]
    if name not in chip_names():
        known = ", ".join(chip_names())
        raise Unavailable(f"NPU {device} is a {soc or 'nameless chip'}; described are {known}")
    return name


@dataclass(frozen=True, slots=True)
class CannCompiler(ObjectStore):
    """Builds kernels for NPUs with CANN's compiler, once per content, in `folder`."""

    toolkit: Toolkit
    folder: Path
    timeout_seconds: float = 300.0
    flags: tuple[str, ...] = _FLAGS

    @property
    def version(self) -> str:
        return self.toolkit.version

    def place(self, source: KernelSource) -> tuple[Path, str, str]:
        return self.folder, "n", "\0".join((self.version, *self.flags, source.digest))

    def built(self, source: KernelSource, work: Path) -> Path | Failure:
        """Device code, tiling function and launch."""
        for name, text in source.files:
            (work / name).write_text(text, encoding="utf-8")
        units = [name for name, _ in source.files if name.endswith(".cpp")]
        unit = "".join(f'#include "{name}"\n' for name in units)
        (work / "unit.cpp").write_text(unit, encoding="utf-8")
        failure = run_compiler(self._command(), work, self.timeout_seconds, cwd=work)
        return failure or work / "unit.so"

    def _command(self) -> list[str]:
        home, libraries = self.toolkit.home, self.toolkit.library.parent
        return [
            str(self.toolkit.compiler), *self.flags, f"-I{home / 'include'}", "-I.", "unit.cpp",
            "-o", "unit.so", f"-L{libraries}", "-lascendcl",
        ]  # fmt: skip


@cache
def _version(compiler: Path) -> str:
    try:
        done = subprocess.run(
            [str(compiler), "--version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"compiler {compiler} does not run: {error}") from error
    return (done.stdout.splitlines() or ["unknown"])[0]


@cache
def _probed(library: Path, device: int) -> str:
    command = [
        sys.executable,
        "-P",
        "-m",
        "kernel_gen.runtime.ascend.cann",
        str(library),
        str(device),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False,
            env=environment,
        )  # fmt: skip
        found = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise Unavailable(f"NPU {device} does not answer: {error}") from error
    if "error" in found:
        raise Unavailable(f"NPU {device}: {found['error']}")
    return str(found["chip"])


def _main(library: str, device: str) -> None:
    """The probe's process: one JSON line about the NPU."""
    try:
        found = {"chip": open_acl(Path(library), int(device)).chip()}
    except (Unavailable, DeviceFault) as error:
        found = {"error": str(error)}
    print(json.dumps(found))


def _first(home: Path, folders: tuple[str, ...], names: tuple[str, ...]) -> Path | None:
    paths = (home / folder / name for name in names for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def _instead() -> str:
    return f"; the simulator needs none: {SIMULATOR}"


if __name__ == "__main__":
    _main(*sys.argv[1:])
