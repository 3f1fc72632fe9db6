"""Fixtures of the runtime's tests."""

from __future__ import annotations

import pytest

from tests.runtime.small_plans import PlainCompiler


@pytest.fixture(scope="session")
def plain_compiler(tmp_path_factory: pytest.TempPathFactory) -> PlainCompiler:
    return PlainCompiler(tmp_path_factory.mktemp("builds"))
