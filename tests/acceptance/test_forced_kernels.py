"""Whatever kernel a search chooses for a program gives eager's answer."""

from __future__ import annotations

import pytest

from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.acceptance.forcing import Forcing
from tests.acceptance.programs import PROGRAMS


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_kernel_is_right(kept_compiler: Compiler, name: str) -> None:
    forcing = Forcing(kept_compiler, host_target())
    forcing.add(name, *PROGRAMS[name])
    forcing.build(jobs=1)
    assert forcing.check(name) >= (0 if name == "writes between reads" else 2)
