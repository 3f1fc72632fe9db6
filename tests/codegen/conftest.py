"""Fixtures of the code generator's tests: a compiler, instruction-set levels."""

from __future__ import annotations

import pytest

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target

LEVELS = ("x86-64", "x86-64-v3", "x86-64-v4")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-update", action="store_true", help="rewrite the golden texts of generated code"
    )


@pytest.fixture(scope="session")
def compiler(kept_compiler: Compiler) -> Compiler:
    return kept_compiler


@pytest.fixture(scope="session", params=LEVELS)
def level(request: pytest.FixtureRequest) -> Target:
    """This machine at each instruction-set level that it has."""
    try:
        return host_target(request.param)
    except InvalidInput as missing:
        pytest.skip(str(missing))
