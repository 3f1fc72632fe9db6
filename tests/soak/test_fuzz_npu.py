"""GAF_SOAK_NPU_GRAPHS random graphs (400 if not set) as kernels for an NPU, on the simulator with
all rules and races checked. A failure names the graph as JSON."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.codegen.ascend.random_kernels import check, drawn

_BATCH = 25
_GRAPHS = int(os.environ.get("GAF_SOAK_NPU_GRAPHS", "400"))
_FIRST = int(os.environ.get("GAF_SOAK_SEED", "1000"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(_FIRST, _FIRST + _GRAPHS // _BATCH))
def test_random_graphs(tmp_path: Path, number: int) -> None:
    cases = drawn(_BATCH, number)
    assert len(cases) == _BATCH
    check(cases, tmp_path)
