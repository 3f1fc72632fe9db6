"""All kernels of the NPU generator's tests on the second implementation of Ascend C."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.ascend.second_api import check_second
from tests.codegen.ascend.test_ascend_kernels import KERNELS, inputs_of


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_right_on_the_second_implementation(name: str, tmp_path: Path) -> None:
    check_second(KERNELS[name], inputs_of(KERNELS[name]), tmp_path)
