"""Building: finding compilers, many kernels in one object, the object cache, failures as values."""

from __future__ import annotations

import ctypes
import os
import select
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Stage
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.flags import compile_flags
from kernel_gen.runtime.host import host_target


def source(symbol: str, body: str) -> KernelSource:
    text = f'extern "C" int {symbol}(const void *) {{ {body} }}\n'
    return KernelSource(symbol, ((f"{symbol}.cpp", text),))


def test_many_kernels_in_one_object(compiler: Compiler) -> None:
    sources = [source(f"k{i}", f"return {i};") for i in range(5)]
    built = compiler.compile(sources, host_target())
    assert not isinstance(built, Failure)
    library = ctypes.CDLL(str(compiler.path_of(built)))
    assert [getattr(library, f"k{i}")(None) for i in range(5)] == list(range(5))
    assert built.data == compiler.path_of(built).read_bytes()


def test_objects_are_cached_by_content(compiler: Compiler) -> None:
    first = compiler.compile([source("cached", "return 7;")], host_target())
    assert not isinstance(first, Failure)
    broken = replace(compiler, command=("/nonexistent/compiler",))
    assert broken.compile([source("cached", "return 7;")], host_target()) == first
    other = broken.compile([source("cached", "return 8;")], host_target())
    assert isinstance(other, Failure)
    assert other.code == "compiler-failed"


def test_a_kernel_is_compiled_once_however_often_it_is_linked(
    compiler: Compiler, tmp_path: Path
) -> None:
    calls, script = tmp_path / "calls", tmp_path / "counting"
    script.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {compiler.command[0]} "$@"\n')
    script.chmod(0o755)
    counting = replace(compiler, command=(str(script),), folder=tmp_path / "objects")
    one, two = source("one", "return 1;"), source("two", "return 2;")
    for sources in ([one], [two, one], [one, two]):
        built = counting.compile(sources, host_target())
        assert not isinstance(built, Failure)
        library = ctypes.CDLL(str(counting.path_of(built)))
        assert [getattr(library, s.entry)(None) for s in sources] == [
            {"one": 1, "two": 2}[s.entry] for s in sources
        ]
    compiled = [line for line in calls.read_text().splitlines() if " -c " in f"{line} "]
    assert len(compiled) == 2


def test_flags_and_target_are_part_of_the_key(compiler: Compiler) -> None:
    names = set()
    for isa in ("x86-64", "x86-64-v3"):
        built = compiler.compile([source("keyed", "return 1;")], host_target(isa))
        assert not isinstance(built, Failure)
        names.add(built.name)
    assert len(names) == 2


def test_a_kernel_that_does_not_compile_is_a_failure(compiler: Compiler) -> None:
    failed = compiler.compile([source("bad", "return nonsense;")], host_target())
    assert isinstance(failed, Failure)
    assert (failed.stage, failed.code) == (Stage.BUILD, "compile-error")
    assert "nonsense" in failed.message
    assert str(compiler.folder) not in failed.message


def test_a_slow_compiler_is_a_failure(compiler: Compiler, tmp_path: Path) -> None:
    script = tmp_path / "slow"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    slow = replace(compiler, command=(str(script),), timeout_seconds=0.2)
    failed = slow.compile([source("late", "return 0;")], host_target())
    assert isinstance(failed, Failure)
    assert (failed.stage, failed.code) == (Stage.TIMEOUT, "build-timeout")


def test_a_slow_compiler_ends_with_all_it_has_started(compiler: Compiler, tmp_path: Path) -> None:
    script, held = tmp_path / "slow", tmp_path / "held"
    os.mkfifo(held)
    script.write_text(f"#!/bin/sh\nsleep 60 > {held} &\nwait\n")
    script.chmod(0o755)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        slow = replace(compiler, command=(str(script),), timeout_seconds=0.5)
        assert isinstance(slow.compile([source("later", "return 0;")], host_target()), Failure)
        assert select.select([reader], [], [], 10)[0]  # a pipe whose last writer has ended
    finally:
        os.close(reader)


def test_nothing_is_left_behind_by_failures(compiler: Compiler, tmp_path: Path) -> None:
    own = replace(compiler, folder=tmp_path)
    assert isinstance(own.compile([source("bad", "return x;")], host_target()), Failure)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_no_sources_is_the_callers_mistake(compiler: Compiler) -> None:
    with pytest.raises(InvalidInput):
        compiler.compile([], host_target())


def test_missing_compiler_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"g\+\+"):
        Compiler.find(tmp_path)


def test_compiler_is_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "mycxx"
    script.write_text("#!/bin/sh\necho mycxx 1.0\n")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    found = Compiler.find(tmp_path / "objects")
    assert found.command == (str(script),)
    assert found.version == "mycxx 1.0"


@pytest.mark.parametrize("links", [True, False])
def test_a_clang_without_its_openmp_builds_kernels_for_one_thread(
    tmp_path: Path, links: bool
) -> None:
    script = tmp_path / "clang++"
    script.write_text(
        f"#!/bin/sh\n[ $1 = --version ] && echo clang version 14\n"
        f"[ $1 != -fopenmp ] || exit {0 if links else 1}\n"
    )
    script.chmod(0o755)
    assert Compiler.find(tmp_path / "objects", command=str(script)).openmp is links


@pytest.mark.parametrize("isa", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_flags_are_explicit(isa: str) -> None:
    target = replace(ANY_TARGET, isa=isa)
    flags = compile_flags(target, openmp=True)
    assert f"-march={isa}" in flags
    assert not {"-march=native", "-mtune=native", "-ffast-math", "-Ofast"} & set(flags)


ANY_TARGET = Target(host_target("x86-64").kind, "any", "x86-64")
