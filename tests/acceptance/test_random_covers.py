"""Random programs under random covers are right: not only what a search would choose."""

from __future__ import annotations

import pytest

from kernel_gen.errors import InvalidInput
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.acceptance.random_covers import check_random_covers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("isa", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("max_nodes", [4, 12])
def test_any_cover_is_right(kept_compiler: Compiler, isa: str, max_nodes: int) -> None:
    try:
        target = host_target(isa)
    except InvalidInput as missing:
        pytest.skip(str(missing))
    kernels, foreign = check_random_covers(target, kept_compiler, 6, max_nodes, max_nodes)
    assert kernels > 0
    assert foreign > 0
