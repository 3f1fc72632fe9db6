"""What a plan needs of the machine and versions it runs with, against what a caller has.

An instruction-set level stands for the features of the x86-64 psABI's micro-architecture levels
(System V ABI, AMD64 supplement, table 3.1), under the names that Linux gives them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from kernel_gen.codegen.cpu.abi import ABI_VERSION
from kernel_gen.ir.target import Target
from kernel_gen.runtime.plan import Provenance

_V2 = ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3")
_V3 = (*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_LEVELS = {"x86-64": (), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
_FLAGS = re.compile(r"^(?:flags|Features)\s*:\s*(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Caller:
    """What a process that wants to run plans has; None where it does not say (not checked).

    `features` are CPU feature names as in `Provenance.requires`, `torch` is a version of which
    major and minor count, `libc` is "glibc 2.36" or another name and version.
    """

    features: frozenset[str] = frozenset()
    abi: int | None = None
    torch: str | None = None
    libc: str | None = None


def unmet(provenance: Provenance, caller: Caller) -> str | None:
    """Why the caller cannot run a plan: "version", "target", or None if it can."""
    if caller.abi is not None and caller.abi != provenance.abi:
        return "version"
    if caller.torch is not None and minor(caller.torch) != minor(provenance.torch):
        return "version"
    if caller.libc is not None and not _libc_fits(provenance.libc, caller.libc):
        return "version"
    return None if caller.features >= frozenset(provenance.requires) else "target"


def sentence(provenance: Provenance, caller: Caller) -> str | None:
    """Why the caller cannot run a plan, for people; None if it can."""
    match unmet(provenance, caller):
        case None:
            return None
        case "target":
            missing = sorted(set(provenance.requires) - caller.features)
            return f"the CPU lacks {', '.join(missing)}"
        case _:
            made = f"ABI {provenance.abi}, torch {provenance.torch}, {provenance.libc}"
            here = f"ABI {caller.abi}, torch {caller.torch}, {caller.libc}"
            return f"it was made for {made}; here is {here}"


def this_process() -> Caller:
    """What this process has: asked of the kernel, the C library and the installed packages."""
    return Caller(
        features=present_features(), abi=ABI_VERSION, torch=version("torch"), libc=libc_version()
    )


def required_features(target: Target) -> tuple[str, ...]:
    """Features that code built for `target` uses, in `normal` spelling, sorted."""
    names = (*_LEVELS.get(target.isa, ()), *target.features)
    return tuple(sorted({normal(name) for name in names}))


def present_features(cpuinfo: str | None = None) -> frozenset[str]:
    """Features of this machine's CPU, from the text of /proc/cpuinfo; empty where there is none."""
    if cpuinfo is None:
        path = Path("/proc/cpuinfo")
        cpuinfo = path.read_text() if path.exists() else ""
    found = _FLAGS.search(cpuinfo)
    return frozenset(normal(name) for name in found[1].split()) if found else frozenset()


def normal(feature: str) -> str:
    """One spelling for a feature: Linux writes avx512_bf16 what compilers call avx512bf16."""
    return feature.lower().replace("_", "").replace(".", "")


def libc_version() -> str | None:
    """This process's C library, as "glibc 2.36"; None where it does not say."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def minor(version: str) -> str:
    """ "2.13.0+cpu" -> "2.13"."""
    return ".".join(version.split("+")[0].split(".")[:2])


def _libc_fits(built: str, present: str) -> bool:
    """The same library, and no older than the one built with."""
    built_name, _, built_version = built.rpartition(" ")
    name, _, version = present.rpartition(" ")
    return name == built_name and _numbers(version) >= _numbers(built_version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
