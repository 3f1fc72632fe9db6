"""The host as a target: instruction-set levels, caches, models, from files of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_gen.errors import InvalidInput
from kernel_gen.runtime import host

V3 = "fpu sse2 abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl avx512_bf16"


def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    """Pretends to be on another machine."""
    info = tmp_path / "cpuinfo"
    info.write_text(
        f"processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nflags\t\t: {flags}\n\nprocessor\t: 1\n"
    )
    for number, (level, kind, size) in enumerate(
        [
            (1, "Data", "48K"),
            (1, "Instruction", "32K"),
            (2, "Unified", "1024K"),
            (3, "Unified", "32M"),
        ]
    ):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "type").write_text(f"{kind}\n")
        (folder / "size").write_text(f"{size}\n")
    monkeypatch.setattr(host, "_CPUINFO", info)
    monkeypatch.setattr(host, "_CACHES", tmp_path)
    monkeypatch.setattr(host.platform, "machine", lambda: "x86_64")


def test_reads_level_caches_and_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, V4)
    target = host.host_target()
    assert (target.isa, target.vector_bytes, target.model) == ("x86-64-v4", 64, "x86-f26m2")
    assert (target.l1_bytes, target.l2_bytes, target.l3_bytes) == (48 << 10, 1 << 20, 32 << 20)
    assert target.features == ("avx512bf16",)
    assert {"avx512f", "avx512bf16"} <= set(host.required_features(target))


def test_lower_levels_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, V4)
    target = host.host_target("x86-64-v3")
    assert (target.isa, target.vector_bytes, target.features) == ("x86-64-v3", 32, ())
    assert "avx512f" not in host.required_features(target)


def test_higher_levels_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, V3)
    assert host.host_target().isa == "x86-64-v3"
    with pytest.raises(InvalidInput, match="x86-64-v3 only"):
        host.host_target("x86-64-v4")
    with pytest.raises(InvalidInput, match="armv8-neon"):
        host.host_target("armv8-neon")


def test_old_machines_have_the_base_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, "fpu sse2")
    assert (host.host_target().isa, host.host_target().vector_bytes) == ("x86-64", 16)
