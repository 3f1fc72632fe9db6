"""Work of a nest and limits of a target."""

from __future__ import annotations

import dataclasses

import pytest

from cost_models.machine import Machine
from cost_models.roofline import Roofline, Work, roofline_of, work_of
from kernel_gen.ir.loopnest import Axis
from kernel_gen.ir.target import DeviceKind, Target
from tests.fixtures import samples

NPU = Target(DeviceKind.ASCEND_SIM, "910b3", "ascend", cores=40, vector_bytes=256)


def test_work_counts_each_point_and_each_operand_once() -> None:
    work = work_of(samples.nest(rows=4))  # relu(x + w) on [4, 8] in fp32
    assert work == Work(operations=2 * 4 * 8, nbytes=4 * (4 * 8 + 8 + 4 * 8), has_product=False)
    assert work.intensity == pytest.approx(64 / 288)


def test_a_symbolic_extent_is_refused() -> None:
    nest = samples.nest()
    symbolic = dataclasses.replace(nest.axes[0], extent="rows")
    broken = dataclasses.replace(nest, axes=(symbolic, Axis("i1", 8)))
    with pytest.raises(ValueError, match="i0"):
        work_of(broken)


def test_peak_grows_with_cores_and_vectors() -> None:
    narrow, wide = roofline_of(samples.TARGET), roofline_of(samples.OTHER_TARGET)
    assert wide.product_rate == 2 * narrow.product_rate
    one = roofline_of(dataclasses.replace(samples.TARGET, cores=1))
    assert narrow.product_rate == 2 * one.product_rate


@pytest.mark.parametrize("target", [samples.TARGET, NPU], ids=["cpu", "npu"])
def test_what_fits_a_level_moves_at_its_rate(target: Target) -> None:
    roofline = roofline_of(target)
    rates = [level.bytes_per_second for level in roofline.levels]
    assert rates == sorted(rates, reverse=True)
    small, huge = Work(0, 1 << 10, False), Work(0, 1 << 40, False)
    assert roofline.level(small) == roofline.levels[0]
    assert roofline.level(huge) == roofline.levels[-1]
    assert roofline.floor_us(huge) == pytest.approx(1e6 * (1 << 40) / rates[-1])


def test_the_longer_of_memory_and_arithmetic_binds() -> None:
    roofline = roofline_of(samples.TARGET)
    busy = Work(operations=1 << 40, nbytes=1 << 10, has_product=True)
    assert not roofline.is_memory_bound(busy)
    assert roofline.floor_us(busy) == pytest.approx(1e6 * busy.operations / roofline.product_rate)
    assert roofline.is_memory_bound(Work(1, 1 << 30, False))


def test_measured_rates_are_used_and_named() -> None:
    assert roofline_of(samples.TARGET, Machine()).is_assumed
    measured = roofline_of(samples.TARGET, Machine(memory_gb_s=10.0))
    assert measured.levels[-1].bytes_per_second == 10e9
    assert "gaf calibrate" in measured.source
    assert not measured.is_assumed


def test_products_of_an_npu_have_a_rate_of_their_own() -> None:
    roofline: Roofline = roofline_of(NPU)
    assert roofline.rate(Work(1, 1, True)) > 10 * roofline.rate(Work(1, 1, False))
