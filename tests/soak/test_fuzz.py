"""GAF_SOAK_GRAPHS random graphs (5,000 if not set) through every template that takes them, and
GAF_SOAK_COVERS (300) as whole programs under random legal covers.

A failure names the graph as JSON: `gaf repro graph.json` cuts it down to a case for a test.
"""

from __future__ import annotations

import os

import pytest

from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.acceptance.random_covers import check_random_covers
from tests.codegen.test_random_kernels import check_random_graphs

_BATCH, _FEW = 20, 5
_BUILD_SECONDS = 280.0  # a batch takes some; long runs share their machine with others
_GRAPHS = int(os.environ.get("GAF_SOAK_GRAPHS", "5000"))
_COVERS = int(os.environ.get("GAF_SOAK_COVERS", "300"))
_FIRST = int(os.environ.get("GAF_SOAK_SEED", "1000"))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", range(_FIRST, _FIRST + _GRAPHS // _BATCH))
def test_random_graphs(tmp_path_factory: pytest.TempPathFactory, number: int) -> None:
    compiler = Compiler.find(tmp_path_factory.mktemp("soak"), timeout_seconds=_BUILD_SECONDS)
    isa = ("x86-64", "x86-64-v3")[number % 2]
    check_random_graphs(compiler, host_target(isa), _BATCH, number, max_nodes=2 + number % 12)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", range(_FIRST, _FIRST + _COVERS // _FEW))
def test_random_covers(tmp_path_factory: pytest.TempPathFactory, number: int) -> None:
    compiler = Compiler.find(tmp_path_factory.mktemp("soak"), timeout_seconds=_BUILD_SECONDS)
    isa = ("x86-64", "x86-64-v3")[number % 2]
    check_random_covers(host_target(isa), compiler, _FEW, number, max_nodes=2 + number % 14)
