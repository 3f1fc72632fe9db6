"""Kernels around products, of any random program of the kind, give eager's and float64's answer."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet

from kernel_gen.errors import InvalidInput
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.acceptance.forcing import Forcing
from tests.acceptance.product_graphs import product_program

_FEW = 8  # programs of one object


def _many(isa: str, first: int, count: int) -> list[ParameterSet]:
    starts = range(first, first + count, _FEW)
    ranges = [range(start, start + _FEW) for start in starts]
    return [pytest.param(isa, r, id=f"{isa}-{r.start}", marks=pytest.mark.slow) for r in ranges]


@pytest.mark.parametrize(
    ("isa", "seeds"),
    [
        pytest.param("x86-64-v3", range(3), id="few"),
        *_many("x86-64", 100, 8),
        *_many("x86-64-v3", 200, 8),
        *_many("x86-64-v4", 300, 8),
    ],
)
def test_random_programs_around_products(kept_compiler: Compiler, isa: str, seeds: range) -> None:
    try:
        target = host_target(isa)
    except InvalidInput as missing:
        pytest.skip(str(missing))
    forcing = Forcing(kept_compiler, target)
    for seed in seeds:
        forcing.add(*product_program(seed))
    forcing.build()
    assert sum(forcing.check(name, threads=(1, 2, 3)) for name in forcing.by_program) > len(seeds)
