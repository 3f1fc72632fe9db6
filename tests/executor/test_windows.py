"""Views of what loads read, against reading element by element."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from kernel_gen.executor.windows import bordered, strided
from kernel_gen.ir.index import FloorDiv, Index, axis_index, make_index

AXES = {"i": (1, 4), "j": (0, 3), "k": (2, 4)}
SHAPE = (9, 11)
FILL = np.array(-1.0)


def random_index(rng: random.Random, largest: int) -> Index:
    total = Index(const=rng.randint(-3, 6))
    for axis in rng.sample(list(AXES), rng.randint(0, 2)):
        total = total + axis_index(axis) * rng.choice((1, 1, 2, 3, -1, -2)[:largest])
    return total


def value(index: Index, point: dict[str, int]) -> int:
    return index.const + sum(index.coeff(axis) * point[axis] for axis in index.axes())


def read_one_by_one(
    source: np.ndarray, index: list[Index], limits: dict[Index, tuple[int, int]]
) -> np.ndarray | None:
    """None where an element that no guard holds back lies outside."""
    found = np.empty([high - low for low, high in AXES.values()])
    for place in itertools.product(*(range(*ends) for ends in AXES.values())):
        point = dict(zip(AXES, place, strict=True))
        at = [value(part, point) for part in index]
        held = all(low <= value(part, point) < high for part, (low, high) in limits.items())
        target = tuple(p - low for p, (low, _) in zip(place, AXES.values(), strict=True))
        if not held:
            found[target] = FILL
        elif all(0 <= p < extent for p, extent in zip(at, source.shape, strict=True)):
            found[target] = source[tuple(at)]
        else:
            return None
    return found


@pytest.mark.parametrize("seed", range(200))
def test_views_hold_what_is_read(seed: int) -> None:
    rng = random.Random(seed)
    source = np.arange(np.prod(SHAPE), dtype=np.float64).reshape(SHAPE)
    if seed % 3 == 0:
        source = np.asfortranarray(source)
    index = [random_index(rng, 6), random_index(rng, 4)]
    guarded = rng.sample(range(2), rng.randint(0, 2))
    limits = {
        index[n]: (max(0, rng.randint(-2, 2)), min(SHAPE[n], SHAPE[n] + rng.randint(-3, 2)))
        for n in guarded
    }
    expected = read_one_by_one(source, index, limits)
    if guarded:
        part = bordered(source, index, limits, AXES, FILL)
        seen = None if part is None else strided(*part, AXES, list(AXES))
    else:
        seen = strided(source, index, AXES, list(AXES))
    if expected is None:
        assert seen is None
    elif seen is not None:
        np.testing.assert_array_equal(np.broadcast_to(seen, expected.shape), expected)
    else:  # refused though all is inside: another guard holds back what lies outside here
        assert len(guarded) == 1


def test_what_is_no_sum_of_axes_is_left_to_gathers() -> None:
    halved = make_index({FloorDiv(axis_index("i"), 2): 1}, 0)
    source = np.zeros(SHAPE)
    assert strided(source, [halved, axis_index("j")], AXES, list(AXES)) is None
    limits = {halved: (0, 2)}
    assert bordered(source, [halved, axis_index("j")], limits, AXES, FILL) is None


def test_a_guard_on_another_sum_is_left_to_gathers() -> None:
    limits = {axis_index("k"): (0, 3)}
    found = bordered(np.zeros(SHAPE), [axis_index("i"), axis_index("j")], limits, AXES, FILL)
    assert found is None
