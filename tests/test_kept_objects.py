"""Objects of kernels that tests keep: compiled once, the oldest removed when there are many."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from kernel_gen.codegen.source import KernelSource
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.fixtures.compilers import forget_oldest


def _source(text: str) -> KernelSource:
    return KernelSource("kernel", (("kernel.cpp", text),))


def test_an_object_is_compiled_once_and_known_to_be_in_use(
    kept_compiler: Compiler, tmp_path: Path
) -> None:
    own = replace(kept_compiler, folder=tmp_path)
    made = own.object(_source('extern "C" int kernel() { return 3; }'), host_target())
    assert isinstance(made, Path)
    os.utime(made, (1.0, 1.0))
    broken = replace(own, command=("/nonexistent/compiler",))
    assert broken.object(_source('extern "C" int kernel() { return 3; }'), host_target()) == made
    assert made.stat().st_mtime > time.time() - 600
    other = broken.object(_source('extern "C" int kernel() { return 4; }'), host_target())
    assert isinstance(other, Failure)


def test_the_longest_unused_are_removed_to_half_of_the_room(tmp_path: Path) -> None:
    for number in range(10):
        file = tmp_path / f"{number}.o"
        file.write_bytes(b"x" * 100)
        os.utime(file, (1000.0 + number, 1000.0 + number))
    (tmp_path / "new.o").write_bytes(b"x" * 100)
    forget_oldest(tmp_path, 1100)
    assert len(list(tmp_path.iterdir())) == 11
    forget_oldest(tmp_path, 1000)
    assert {file.name for file in tmp_path.iterdir()} == {"6.o", "7.o", "8.o", "9.o", "new.o"}
    forget_oldest(tmp_path, 50)
    assert {file.name for file in tmp_path.iterdir()} == {"new.o"}
