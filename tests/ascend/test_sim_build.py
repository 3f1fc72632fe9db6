"""What is built once per machine for the simulator: by one process, and then used by all."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.ascend.conftest import KERNELS

sim: Any = importlib.import_module("kernel_gen.ascend.sim.build")


def test_kernels_are_compiled_with_the_header_as_read_before(tmp_path: Path) -> None:
    if "clang" in sim._found().version or "g++" not in sim._found().version:
        pytest.skip("only GCC has such files")
    (tmp_path / "add.cpp").write_text((KERNELS / "add.cpp").read_text())
    command = [*sim._compiler(), *sim._KERNEL_FLAGS, "-fsyntax-only", "-H", "-Winvalid-pch"]
    read = sim._run([*command, *sim._includes(), "add.cpp"], tmp_path).splitlines()
    assert read[0] == f"! {sim._precompiled()}/kernel_operator.h.gch"


def test_who_comes_second_waits_and_takes_what_is_there(tmp_path: Path) -> None:
    built, seen = tmp_path / "built", list[Path | None]()
    waits = threading.Event()

    def second() -> None:
        waits.set()
        with sim._first_of_machine(built) as work:
            seen.append(work)

    other = threading.Thread(target=second)
    with sim._first_of_machine(built) as work:
        other.start()
        waits.wait()
        other.join(0.2)
        assert seen == []
        (work / "made").write_text("whole")
        (work / "made").replace(built)
    other.join()
    assert seen == [None]
    assert built.read_text() == "whole"
