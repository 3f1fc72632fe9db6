"""Kernels around products, of any random program of the kind, give eager's and float64's answer."""

from __future__ import annotations

import pytest

from kernel_gen.errors import InvalidInput
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.acceptance.forcing import Forcing
from tests.acceptance.product_graphs import product_program


@pytest.mark.parametrize(
    ("isa", "seeds"),
    [
        pytest.param("x86-64-v3", range(3), id="few"),
        pytest.param("x86-64", range(100, 130), id="sse2", marks=pytest.mark.slow),
        pytest.param("x86-64-v3", range(200, 260), id="avx2", marks=pytest.mark.slow),
        pytest.param("x86-64-v4", range(300, 330), id="avx512", marks=pytest.mark.slow),
    ],
)
def test_random_programs_around_products(
    tmp_path_factory: pytest.TempPathFactory, isa: str, seeds: range
) -> None:
    try:
        target = host_target(isa)
    except InvalidInput as missing:
        pytest.skip(str(missing))
    forcing = Forcing(Compiler.find(tmp_path_factory.mktemp("products")), target)
    for seed in seeds:
        forcing.add(*product_program(seed))
    forcing.build()
    assert sum(forcing.check(name, threads=(1, 2, 3)) for name in forcing.by_program) > len(seeds)
