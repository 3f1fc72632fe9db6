"""Rates of the machine at hand for the analytic model: measured, kept in a file, read by searches.

    <user's cache>/graph-autofusion/machines/<target>.json

Rates only rank candidates before they are built; times that a plan reports are always measured.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import platformdirs

from cost_models.machine import Machine
from cost_models.probes import Probes
from kernel_gen.codec import from_json, to_json
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.target import Target

log = logging.getLogger(__name__)
MEASURED = ("clock_ghz", "memory_gb_s", "l3_gb_s", "l2_gb_s_core")
"""Fields of `Machine` that are measured; the others stay as they are."""
_SAMPLES = 7
_SAMPLE_SECONDS = 0.05
_MOST_COPIED_BYTES = 1 << 30
_FMA_UNITS = 2  # of a core: what the model counts cycles with
_NOISE = 0.1  # share by which two measurements of one rate may differ on an idle machine


def machine_of(target: Target) -> Machine:
    """The rates kept for a target, else the built-in ones. A damaged file is passed over."""
    path = _path(target)
    try:
        return from_json(Machine, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Machine()
    except (OSError, UnicodeDecodeError, InvalidInput) as error:
        log.warning("rates in %s are not used (run `gaf calibrate`): %s", path, error)
        return Machine()


def calibrate(target: Target) -> Machine:
    """Measures the host, of which `target` must be a description; about three seconds.

    Raises Unavailable without a compiler.
    """
    alone, together = Probes(1), Probes(target.cores)
    fma, operations = alone.fma("float32")
    lanes = target.vector_bytes // 4
    beyond = min(2 * target.l3_bytes, _MOST_COPIED_BYTES)
    within = max(target.l3_bytes // 2, target.l2_bytes)
    return dataclasses.replace(
        Machine(),
        clock_ghz=operations / _seconds(fma) / 1e9 / (2 * _FMA_UNITS * lanes),
        memory_gb_s=_copied_gb_s(together, beyond),
        l3_gb_s=_copied_gb_s(together, min(within, beyond)),
        l2_gb_s_core=_copied_gb_s(alone, target.l2_bytes // 2),
    )


def contradiction(target: Target, machine: Machine) -> str | None:
    """How rates contradict each other, for people; None where they can all be true.

    No cache is slower than what lies behind it: where one seems to be, other work on the machine
    had its share of one measurement and not of the other.
    """
    levels = (
        ("L2", machine.l2_gb_s_core * target.cores),
        ("L3", machine.l3_gb_s),
        ("memory", machine.memory_gb_s),
    )
    for (near, fast), (far, slow) in itertools.pairwise(levels):
        if fast < (1 - _NOISE) * slow:
            return f"{near} seems slower than {far} ({fast:.1f} and {slow:.1f} GB/s)"
    return None


def keep(target: Target, machine: Machine) -> Path:
    """Writes the rates in one step, for all later searches of this user; raises Unavailable."""
    path = _path(target)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(to_json(machine), encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may not exist, nor its folder
            temporary.unlink()
        raise Unavailable(f"cannot write the rates to {path}: {error.strerror}") from error
    return path


def _path(target: Target) -> Path:
    return platformdirs.user_cache_path("graph-autofusion") / "machines" / f"{target.key}.json"


def _copied_gb_s(probes: Probes, footprint_bytes: int) -> float:
    """Bytes read and written per second by a plain copy."""
    half = footprint_bytes // 2
    return 2 * half / _seconds(probes.copies(half, half)["copy"]) / 1e9


def _seconds(run: Callable[[], None]) -> float:
    """The least time of one run, over samples long enough for the clock: other work on the machine
    can only add to it."""
    run()
    start = time.perf_counter()
    run()
    once = max(time.perf_counter() - start, 1e-9)
    count = max(1, round(_SAMPLE_SECONDS / once))
    return min(_sample(run, count) for _ in range(_SAMPLES))


def _sample(run: Callable[[], None], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count
