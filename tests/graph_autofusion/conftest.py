"""Real plans for tests of the front door, and a home folder of its own for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from graph_autofusion.capturing import as_module
from graph_autofusion.module import OptimizedModule
from graph_autofusion.options import Options
from kernel_gen.runtime.build import Compiler
from tests.graph_autofusion.quick_plans import QuickSource

Wrap = Callable[..., OptimizedModule]


@pytest.fixture(autouse=True)
def own_home(home: Path) -> None:
    """No test here touches the real user's folders."""


@pytest.fixture(scope="session")
def gaf_compiler(kept_compiler: Compiler) -> Compiler:
    return kept_compiler


@pytest.fixture
def source(gaf_compiler: Compiler) -> QuickSource:
    return QuickSource(gaf_compiler)


@pytest.fixture
def wrap(source: QuickSource) -> Wrap:
    """A model or function with real plans, strict: a failure is no fallback."""

    def make(model: nn.Module | Callable[..., Any], **options: Any) -> OptimizedModule:
        return OptimizedModule(as_module(model), Options(**{"strict": True, **options}), source)

    return make
