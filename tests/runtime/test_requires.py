"""What a plan needs against what is here."""

from __future__ import annotations

import pytest

from kernel_gen.codegen.cpu.abi import ABI_VERSION
from kernel_gen.runtime.plan import Provenance
from kernel_gen.runtime.requires import Caller, sentence, this_process, unmet

NEEDS = Provenance("g++", (), "1", ABI_VERSION, "2.13", "glibc 2.36", ("avx2", "fma"))
HERE = Caller(frozenset(("avx2", "fma", "sse2")), ABI_VERSION, "2.13.4+cpu", "glibc 2.36")


def test_met() -> None:
    assert unmet(NEEDS, HERE) is None
    assert sentence(NEEDS, HERE) is None


@pytest.mark.parametrize(
    ("caller", "code", "words"),
    [
        (Caller(frozenset(("fma",)), ABI_VERSION), "target", "the CPU lacks avx2"),
        (Caller(HERE.features, ABI_VERSION + 1), "version", "ABI"),
        (Caller(HERE.features, ABI_VERSION, "2.14.0"), "version", "here is ABI 1, torch 2.14.0"),
        (Caller(HERE.features, libc="glibc 2.35"), "version", "glibc 2.35"),
        (Caller(HERE.features, libc="musl 9"), "version", "musl 9"),
    ],
)
def test_unmet(caller: Caller, code: str, words: str) -> None:
    assert unmet(NEEDS, caller) == code
    assert words in str(sentence(NEEDS, caller))


def test_newer_c_library_will_do() -> None:
    assert unmet(NEEDS, Caller(HERE.features, libc="glibc 2.100")) is None


def test_this_process_says_all() -> None:
    here = this_process()
    assert here.features
    assert here.abi == ABI_VERSION
    assert str(here.torch).startswith("2.13")
    assert here.libc
