"""Fixtures of the simulator's tests: hand-written kernels, built once per session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_gen.ascend.chips import load_chip
from kernel_gen.ascend.sim import Simulator, build

KERNELS = Path(__file__).parent / "kernels"


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Simulator]:
    """`kernel("add")` or `kernel("add", chip="910b3")`: a kernel of `kernels/` on that chip."""
    built: dict[str, Path] = {}

    def get(name: str, chip: str = "910b1") -> Simulator:
        if name not in built:
            text = (KERNELS / f"{name}.cpp").read_text()
            built[name] = build({f"{name}.cpp": text}, tmp_path_factory.mktemp(name))
        return Simulator(built[name], name, load_chip(chip))

    return get


@pytest.fixture
def compile_kernel(tmp_path: Path) -> Callable[..., Simulator]:
    """`compile_kernel(text)`: a kernel given as text, with the entry `k`."""

    def get(text: str, symbol: str = "k", chip: str = "910b1") -> Simulator:
        return Simulator(build({"k.cpp": text}, tmp_path), symbol, load_chip(chip))

    return get
