"""Drop any one queue operation, flag or barrier from a correct kernel: the simulator says so."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kernel_gen.ascend.chips import load_chip
from kernel_gen.ascend.sim import SimResult, Simulator, build

KERNELS = Path(__file__).parent / "kernels"
_SYNC = re.compile(r"^\s*(?:\w+\.(?:EnQue|DeQue)|(?:CrossCore)?(?:Set|Wait)Flag|PipeBarrier)\b.*;")

Run = Callable[[Simulator], SimResult]


def _add(simulator: Simulator) -> SimResult:
    x = np.ones(8 * 256, np.float16)
    z = np.zeros_like(x)
    return simulator.run([x, x], [z], tiling=struct.pack("II", x.size, 256), blocks=1)


def _softmax(simulator: Simulator) -> SimResult:
    x = np.ones((4, 128), np.float32)
    return simulator.run([x], [x.copy()], tiling=struct.pack("II", *x.shape), blocks=1)


def _layernorm(simulator: Simulator) -> SimResult:
    x = np.ones((4, 128), np.float16)
    tiling = struct.pack("IIf", 4, 128, 1e-5)
    return simulator.run([x, x[0], x[1]], [x.copy()], tiling=tiling, blocks=1)


def _transpose(simulator: Simulator) -> SimResult:
    x = np.ones((32, 96), np.float16)
    y = np.zeros((96, 32), np.float16)
    return simulator.run([x], [y], tiling=struct.pack("II", *x.shape), blocks=1)


def _matmul(simulator: Simulator) -> SimResult:
    a = np.ones((64, 96), np.float16)
    b = np.ones((96, 64), np.float16)
    c = np.zeros((64, 64), np.float16)
    tiling = struct.pack("6I", 64, 64, 96, 32, 32, 32)
    return simulator.run([a, b], [c], tiling=tiling, blocks=1)


def _epilogue(simulator: Simulator) -> SimResult:
    a = np.ones((128, 32), np.float16)
    b = np.ones((32, 32), np.float16)
    r = np.ones((128, 32), np.float32)
    tiling = struct.pack("III", 128, 32, 32)
    return simulator.run([a, b, r], [r.copy()], tiling=tiling, blocks=1, workspace_bytes=8192)


def _bias(simulator: Simulator) -> SimResult:
    a, b = np.ones((16, 96), np.float16), np.ones((96, 64), np.float16)
    c = np.zeros((16, 64), np.float16)
    tiling = struct.pack("IIII", 16, 64, 96, 16)
    return simulator.run([a, b, b[0]], [c], tiling=tiling, blocks=1)


_RUNS: dict[str, Run] = {
    "add": _add,
    "softmax": _softmax,
    "layernorm": _layernorm,
    "transpose": _transpose,
    "matmul": _matmul,
    "epilogue": _epilogue,
    "bias": _bias,
}


def _mutants(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, dropped statement and text of each mutant."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if _SYNC.match(line):
            mutant = [*lines[:i], "        ;", *lines[i + 1 :]]
            yield i + 1, line.strip(), "\n".join(mutant) + "\n"


def _together(name: str, mutants: list[tuple[int, str, str]], text: str) -> str:
    """One translation unit: every mutant in a namespace of its own, the sound kernel as line 0."""
    parts = ['#include "kernel_operator.h"\n']
    for line, _, mutant in [(0, "", text), *mutants]:
        body = mutant.replace('#include "kernel_operator.h"', "")
        parts.append(
            f"namespace line{line} {{\n{body}}}\n".replace(f"void {name}(", f"void k{line}(")
        )
    return "".join(parts)


@pytest.mark.parametrize("name", sorted(_RUNS))
def test_every_dropped_synchronisation_is_reported(name: str, tmp_path: Path) -> None:
    text = (KERNELS / f"{name}.cpp").read_text()
    mutants = list(_mutants(text))
    library = build({"k.cpp": _together(name, mutants, text)}, tmp_path)
    chip = load_chip("910b1")
    missed = [
        f"{line}: {statement}"
        for line, statement, _ in mutants
        if _RUNS[name](Simulator(library, f"k{line}", chip)).ok
    ]
    assert len(mutants) >= 4
    assert missed == []
    assert _RUNS[name](Simulator(library, "k0", chip)).ok
