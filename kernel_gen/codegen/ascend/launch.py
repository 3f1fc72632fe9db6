"""From a nest, a schedule and dimensions to everything that a launch needs.

The tiling function is built for the host by the host's compiler and called: the same text that is
delivered decides the tiles here.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kernel_gen.codegen.ascend.registry import templates
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, InvalidInput, Refusal, Unavailable
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule

_COMPILER = ("c++", "-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra")
_MOST_TILING_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel for given dimensions. `tiling` are the bytes of its tiling data."""

    source: KernelSource
    symbol: str
    tiling: bytes
    blocks: int
    workspace_bytes: int


@dataclass(frozen=True, slots=True)
class Tiler:
    """A built tiling function."""

    library: ctypes.CDLL
    symbol: str

    def __call__(self, dims: Sequence[int]) -> tuple[bytes, int, int]:
        """Tiling data, number of blocks, bytes of workspace for the program's dimensions, in the
        order of their names. Raises InvalidInput where no tile fits."""
        data = ctypes.create_string_buffer(_MOST_TILING_BYTES)
        blocks, work = ctypes.c_uint32(), ctypes.c_uint64()
        given = (ctypes.c_int64 * max(len(dims), 1))(*dims)
        status = self.library[f"tiling_{self.symbol}"](
            given, len(dims), data, ctypes.byref(blocks), ctypes.byref(work)
        )
        if status:
            why = {1: "another number of dimensions is expected", 2: "no tile fits"}
            raise InvalidInput(f"tiling of {self.symbol} for {list(dims)}: {why.get(status)}")
        size = self.library[f"tiling_bytes_{self.symbol}"]()
        return data.raw[:size], blocks.value, work.value


def build_tiler(source: KernelSource, workdir: Path) -> Tiler:
    """Builds the tiling function in `workdir`. Raises Unavailable without a compiler."""
    workdir.mkdir(parents=True, exist_ok=True)
    for name, text in source.files[1:3]:
        (workdir / name).write_text(text, encoding="utf-8")
    unit = source.files[2][0]
    library = workdir / f"lib{source.entry}_tiling.so"
    command = [*_COMPILER, unit, "-o", library.name]
    try:
        done = subprocess.run(command, cwd=workdir, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"no C++ compiler: {error}") from error
    if done.returncode:
        raise InvalidGraph(f"tiling function of {source.entry}: {done.stderr}")
    return Tiler(ctypes.CDLL(str(library)), source.entry)


@lru_cache(maxsize=64)
def _tiler(source: KernelSource, workdir: Path) -> Tiler:
    return build_tiler(source, workdir)


def prepare(
    nest: LoopNest,
    target: Target,
    schedule: Schedule,
    dims: Sequence[int],
    workdir: Path,
    symbol: str = "fused_kernel",
) -> Launch:
    """Generates the kernel of a schedule and tiles it for `dims` (the values of the nest's symbols
    in the order of their names; none for a static nest)."""
    template = next(t for t in templates(target) if t.name == schedule.template)
    source = template.generate(nest, target, schedule, symbol)
    tiling, blocks, work = _tiler(source, workdir / source.digest[:16])(dims)
    return Launch(source, symbol, tiling, blocks, work)


def first_schedule(nest: LoopNest, target: Target) -> Schedule | Refusal:
    """The first guess of the first template that takes the nest."""
    refusal = Refusal("no-template", "no template takes this group")
    for template in templates(target):
        refused = template.refuse(nest, target)
        if refused is None:
            return template.schedule(nest, target, dict(template.space(nest, target).seeds[0]))
        if refused.code not in ("not-pointwise", "no-reduction", "has-contraction", "no-product"):
            refusal = refused
    return refusal
