"""Fixtures of the runtime's tests."""

from __future__ import annotations

import pytest

from kernel_gen.runtime.build import Compiler


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler.find(tmp_path_factory.mktemp("builds"))
