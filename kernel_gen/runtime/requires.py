"""What a plan needs of the machine and versions it runs with, against what a caller has."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.metadata import version

from kernel_gen.codegen.cpu.abi import ABI_VERSION
from kernel_gen.runtime.host import host_features
from kernel_gen.runtime.plan import Provenance


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
        features=host_features(), abi=ABI_VERSION, torch=version("torch"), libc=libc_version()
    )


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
    return tuple(int(part) for part in version.split(".") if re.fullmatch("[0-9]{1,9}", part))
