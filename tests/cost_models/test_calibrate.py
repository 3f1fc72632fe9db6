"""Rates of a machine: measured, kept, read back; a damaged file is passed over."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from cost_models.calibrate import MEASURED, calibrate, contradiction, keep, machine_of
from cost_models.choose import model_for
from cost_models.machine import Machine
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.runtime.host import host_target


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_this_machine_has_rates() -> None:
    small = dataclasses.replace(host_target(), l2_bytes=1 << 18, l3_bytes=1 << 20)
    measured = calibrate(small)
    for name in MEASURED:
        assert getattr(measured, name) > 0
    assert measured.product_efficiency == Machine().product_efficiency


def test_kept_rates_rank_the_next_search() -> None:
    target = host_target()
    assert machine_of(target) == Machine()
    slow = Machine(memory_gb_s=1.0)
    keep(target, slow)
    assert machine_of(target) == slow
    assert model_for(target)._machine == slow  # type: ignore[attr-defined]
    other = dataclasses.replace(target, model="other")
    assert machine_of(other) == Machine()


@pytest.mark.parametrize("text", ["", "{", '{"memory_gb_s":-1.0}', '{"memory_gb_s":1e999}'])
def test_a_damaged_file_is_passed_over(text: str, caplog: pytest.LogCaptureFixture) -> None:
    target = host_target()
    keep(target, Machine()).write_text(text)
    assert machine_of(target) == Machine()
    assert "gaf calibrate" in caplog.text


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({}, None),
        ({"l3_gb_s": 20.0}, "L3 seems slower than memory (20.0 and 41.0 GB/s)"),
        ({"l3_gb_s": 39.0}, None),  # as fast, but for noise
        ({"l2_gb_s_core": 30.0}, "L2 seems slower than L3 (60.0 and 140.0 GB/s)"),
        ({"l2_gb_s_core": 75.0}, None),  # two cores together
    ],
)
def test_a_cache_is_not_slower_than_what_lies_behind_it(
    rates: dict[str, float], expected: str | None
) -> None:
    target = dataclasses.replace(host_target(), cores=2)
    assert contradiction(target, Machine(**rates)) == expected  # type: ignore[arg-type]


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="clock_ghz"):
        Machine(clock_ghz=0.0)


def test_a_place_that_cannot_be_written_is_named(cache: Path) -> None:
    (cache / "graph-autofusion").write_text("a file")
    with pytest.raises(Unavailable, match="cannot write the rates"):
        keep(host_target(), Machine())
