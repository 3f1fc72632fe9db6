"""All kernels of the NPU generator's tests, and GAF_SOAK_NPU_GRAPHS random graphs (400 if not set),
on the second implementation of Ascend C."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.codegen.ascend.random_kernels import drawn
from tests.codegen.ascend.second_api import check_many, check_second
from tests.codegen.ascend.test_ascend_kernels import KERNELS, inputs_of

_BATCH = 25
_GRAPHS = int(os.environ.get("GAF_SOAK_NPU_GRAPHS", "400"))
_FIRST = int(os.environ.get("GAF_SOAK_SEED", "1000"))


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_right_on_the_second_implementation(name: str, tmp_path: Path) -> None:
    check_second(KERNELS[name], inputs_of(KERNELS[name]), tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(_FIRST, _FIRST + _GRAPHS // _BATCH))
def test_random_graphs_are_right_on_the_second_implementation(tmp_path: Path, number: int) -> None:
    check_many(drawn(_BATCH, number), tmp_path)
