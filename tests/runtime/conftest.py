"""Fixtures of the runtime's tests."""

from __future__ import annotations

import pytest

from kernel_gen.runtime.build import Compiler
from tests.fixtures.compilers import patient_compiler


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return patient_compiler(tmp_path_factory.mktemp("builds"))
