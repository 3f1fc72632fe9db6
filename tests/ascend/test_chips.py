"""Chip files: complete, sourced, and consistent with what is public about the chips."""

from __future__ import annotations

import pickle
from dataclasses import fields

import pytest

from kernel_gen.ascend.chips import Chip, chip_names, load_chip
from kernel_gen.errors import InvalidInput


def test_chips_that_are_described() -> None:
    assert chip_names() == ("310p", "910b1", "910b3", "910b4", "950")
    assert [load_chip(name).estimated for name in chip_names()] == [True, False, False, False, True]


@pytest.mark.parametrize("name", ["310p", "910b1", "910b3", "910b4", "950"])
def test_every_number_has_a_source(name: str) -> None:
    chip = load_chip(name)
    numbers = {f.name for f in fields(Chip)} - {"name", "estimated", "instructions", "sources"}
    assert chip.sources.keys() == numbers | chip.instructions.keys()
    words = ("estimate", "fitted", "published", "public")
    assert all(source.startswith(words) or "public" in source for source in chip.sources.values())
    assert chip.ub_usable_bytes < chip.ub_bytes


def test_910b_capacities() -> None:
    chip = load_chip("910b3")
    assert (chip.cube_cores, chip.vector_cores, chip.mhz) == (20, 40, 1800)
    assert (chip.ub_bytes, chip.l1_bytes, chip.l0c_bytes) == (192 << 10, 512 << 10, 128 << 10)
    assert (chip.l0a_bytes, chip.l0b_bytes, chip.bt_bytes) == (64 << 10, 64 << 10, 1 << 10)
    assert chip.l2_bytes == 192 << 20
    assert load_chip("910b1").microseconds(1850) == pytest.approx(1.0)


def test_chips_are_shared_and_pickle_by_name() -> None:
    chip = load_chip("910b4")
    assert pickle.loads(pickle.dumps(chip)) is chip  # noqa: S301


def test_unknown_chip_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="910b3"):
        load_chip("910a")
