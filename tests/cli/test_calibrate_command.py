"""`gaf calibrate` keeps only rates that an idle machine can have."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cost_models.calibrate as rates
import graph_autofusion.cli.calibrate as command
from cost_models.calibrate import machine_of
from cost_models.machine import Machine
from kernel_gen.runtime.host import host_target
from tests.cli.conftest import Gaf

TARGET = replace(host_target(), cores=2)
TRUE = Machine(memory_gb_s=17.0)
BUSY = "this machine is busy (87% of 2 cores)"
NONSENSE = Machine(memory_gb_s=20.0, l3_gb_s=10.0)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An idle machine with true rates."""
    monkeypatch.setattr("kernel_gen.runtime.host.host_target", lambda: TARGET)
    monkeypatch.setattr(command, "other_work", lambda: "")
    monkeypatch.setattr(rates, "calibrate", lambda target: TRUE)
    return monkeypatch


def test_rates_of_an_idle_machine_are_kept(gaf: Gaf, machine: pytest.MonkeyPatch) -> None:
    found = gaf("calibrate", "--json")
    assert (found.code, found.errors) == (0, "")
    assert found.json["rates"]["memory_gb_s"] == 17.0
    assert machine_of(TARGET) == TRUE


@pytest.mark.parametrize(("work", "measured"), [(BUSY, TRUE), ("", NONSENSE)])
def test_rates_that_other_work_has_spoilt_are_kept_only_if_forced(
    gaf: Gaf, machine: pytest.MonkeyPatch, work: str, measured: Machine
) -> None:
    machine.setattr(command, "other_work", lambda: work)
    machine.setattr(rates, "calibrate", lambda target: measured)
    found = gaf("calibrate", "--json")
    assert (found.code, found.output) == (3, "")
    assert (work or "L3 seems slower") in found.errors
    assert "run it again when the machine is idle, or with --force" in found.errors
    assert machine_of(TARGET) == Machine()
    found = gaf("calibrate", "--force", "--json")
    assert found.code == 0
    assert found.json["rates"]["memory_gb_s"] == measured.memory_gb_s
    assert found.errors.startswith("gaf: ")
    assert machine_of(TARGET) == measured
