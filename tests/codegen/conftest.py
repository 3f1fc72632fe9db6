"""Fixtures of the code generator's tests."""

from __future__ import annotations

import pytest

from kernel_gen.runtime.build import Compiler


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-update", action="store_true", help="rewrite the golden texts of generated code"
    )


@pytest.fixture(scope="session")
def compiler(kept_compiler: Compiler) -> Compiler:
    return kept_compiler
