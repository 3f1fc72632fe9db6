"""The machine at hand as a `Target`, read from the kernel's files; no compiler is needed."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.target import DeviceKind, Target

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_V3 = frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm", "xsave"])
_V4 = _V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
_EXTENSIONS = {"avx512_bf16": "avx512bf16", "avx512_vnni": "avx512vnni"}
VECTOR_BYTES = {"x86-64": 16, "x86-64-v3": 32, "x86-64-v4": 64, "armv8-neon": 16}
"""Instruction-set levels that generators know, and the bytes of one vector register."""


def host_target(isa: str | None = None) -> Target:
    """This machine, or a lower instruction-set level of it (`isa`).

    Raises InvalidInput if `isa` is unknown or above what the machine has.
    """
    fields = _first_processor()
    flags = frozenset(fields.get("flags", "").split())
    best = _best_level(flags)
    level = best if isa is None else _checked(isa, best)
    features = sorted(_EXTENSIONS[f] for f in flags & _EXTENSIONS.keys())
    l1, l2, l3 = _cache_sizes()
    return Target(
        kind=DeviceKind.CPU,
        model=_model(fields),
        isa=level,
        features=tuple(features) if level == "x86-64-v4" else (),
        cores=len(os.sched_getaffinity(0)),
        vector_bytes=VECTOR_BYTES[level],
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
    )


def host_features() -> frozenset[str]:
    """CPU feature names of this machine as plans require them ("avx2", "avx512f", …)."""
    flags = frozenset(_first_processor().get("flags", "").split())
    return flags | {_EXTENSIONS[f] for f in flags & _EXTENSIONS.keys()}


def required_features(target: Target) -> tuple[str, ...]:
    """CPU features that code built for `target` needs, sorted."""
    level = {"x86-64-v3": _V3, "x86-64-v4": _V4}.get(target.isa, frozenset[str]())
    return tuple(sorted(level | set(target.features)))


def _checked(isa: str, best: str) -> str:
    levels = [name for name in VECTOR_BYTES if (name == "armv8-neon") == (best == "armv8-neon")]
    if isa not in levels:
        raise InvalidInput(f"instruction set {isa!r}: this machine knows {', '.join(levels)}")
    if levels.index(isa) > levels.index(best):
        raise InvalidInput(f"instruction set {isa!r}: this machine has {best} only")
    return isa


def _best_level(flags: frozenset[str]) -> str:
    if platform.machine() in ("aarch64", "arm64"):
        return "armv8-neon"
    if flags >= _V4:
        return "x86-64-v4"
    return "x86-64-v3" if flags >= _V3 else "x86-64"


def _first_processor() -> dict[str, str]:
    """Fields of the first processor in /proc/cpuinfo; empty where there is no such file."""
    try:
        text = _CPUINFO.read_text()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _model(fields: dict[str, str]) -> str:
    """Family and model as one word: x86-f25m17."""
    if "cpu family" in fields:
        return f"x86-f{fields['cpu family']}m{fields.get('model', '0')}"
    part = fields.get("CPU part", "unknown")
    return re.sub(r"[^A-Za-z0-9.]", "", f"{platform.machine()}.{part}")


def _cache_sizes() -> tuple[int, int, int]:
    """Bytes of the first-level data cache, the second level and the last level."""
    sizes = {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}
    for folder in sorted(_CACHES.glob("index*")):
        try:
            kind = (folder / "type").read_text().strip()
            level = int((folder / "level").read_text())
            sizes[level] = sizes.get(level, 0) if kind == "Instruction" else _size(folder / "size")
        except (OSError, ValueError):
            continue
    return sizes[1], sizes[2], sizes[3]


def _size(path: Path) -> int:
    """Bytes of a sysfs size: 32K -> 32768."""
    text = path.read_text().strip()
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * factor
