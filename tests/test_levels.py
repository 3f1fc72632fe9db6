"""What takes instruction-set levels in turn: each case at one, each level in some case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.fixtures import levels


class _Item(SimpleNamespace):
    def get_closest_marker(self, name: str) -> object | None:
        return name if self.in_turn else None

    def __hash__(self) -> int:
        return id(self)


def _item(test: str, case: int, level: str, in_turn: bool = True) -> Any:
    indices = {"case": case, "level": levels.LEVELS.index(level)}
    callspec = SimpleNamespace(indices=indices, params={"level": level})
    return _Item(nodeid=f"{test}[{level}-{case}]", callspec=callspec, in_turn=in_turn)


def _kept(items: list[Any], every: bool, here: tuple[str, ...]) -> tuple[list[Any], int]:
    left_out: list[Any] = []
    config: Any = SimpleNamespace(
        getoption=lambda name: every,
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "_is_here", lambda name: name in here)
        levels.pytest_collection_modifyitems(config, items)
    return items, len(left_out)


@pytest.mark.parametrize("here", [levels.LEVELS, levels.LEVELS[:2]])
def test_each_case_has_one_level_and_each_level_has_cases(here: tuple[str, ...]) -> None:
    names, plain = range(7), _item("plain", 0, "x86-64", in_turn=False)
    drawn = [_item("some", case, level) for level in levels.LEVELS for case in names]
    kept, left_out = _kept([*drawn, plain], False, here)
    assert kept[-1] is plain
    assert sorted(item.callspec.indices["case"] for item in kept[:-1]) == list(names)
    assert len(kept) + left_out == 1 + len(names) * len(levels.LEVELS)
    assert {item.callspec.params["level"] for item in kept[:-1]} == set(here)


def test_all_levels_are_run_where_that_is_asked_for() -> None:
    drawn = [_item("some", case, level) for level in levels.LEVELS for case in range(3)]
    assert _kept(list(drawn), True, levels.LEVELS) == (drawn, 0)
