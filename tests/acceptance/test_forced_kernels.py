"""Whatever kernel a search chooses for a program gives eager's answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_gen.runtime.host import host_target
from tests.acceptance.forcing import Forcing
from tests.acceptance.programs import PROGRAMS
from tests.fixtures.compilers import patient_compiler

# One worker builds the kernels of all programs, once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("forced")]


@pytest.fixture(scope="module")
def forced(tmp_path_factory: pytest.TempPathFactory) -> Forcing:
    folder: Path = tmp_path_factory.mktemp("forced")
    forcing = Forcing(patient_compiler(folder), host_target())
    for name, (function, inputs) in PROGRAMS.items():
        forcing.add(name, function, inputs)
    forcing.build()
    return forcing


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_kernel_is_right(forced: Forcing, name: str) -> None:
    assert forced.check(name) >= (0 if name == "writes between reads" else 2)
