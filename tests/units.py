"""How tests are dealt out to the workers of pytest-xdist.

Tests that share something dear, a Ray, a browser, the objects of a module's fixture, are a unit of
one worker, so that it is made once. xdist's own `--dist loadgroup` reads the units' names off the
ends of the tests' ids, which it can no longer write there since pytest 9.2: it parts each unit, and
says nothing. Here the workers hand them to the scheduler in a file.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_LATE = ("postgres", "browser", "slow", "ray")
_WAITS = "ray"  # mostly for processes to start and searches to end: beside all the others
_FILE = "gaf_units"


class _UnitScheduling(LoadScopeScheduling):
    """Units in the order in which their first tests are collected."""

    def __init__(self, config: pytest.Config, log: Any, file: Path) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)
        self._file = file
        self._units: Mapping[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._units is None:
            self._units = json.loads(self._file.read_text())
        plain = nodeid if nodeid in self._units else nodeid.rpartition("@")[0]
        return self._units.get(plain, nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Names the workers' file, in the folder of this run."""
    node.workerinput[_FILE] = str(_file(node.config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _UnitScheduling | None:
    if config.getvalue("dist") != "loadgroup":
        return None
    return _UnitScheduling(config, log, _file(config))


def _file(config: pytest.Config) -> Path:
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return factory.getbasetemp() / "units.json"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs servers or much time comes last, so that a plain fault shows in seconds; larger
    units of it before smaller ones, so that the workers end together."""
    units = {item.nodeid: unit_of(item) for item in items}
    given = getattr(config, "workerinput", {}).get(_FILE)
    if given is None:
        items.sort(key=_rank)
        return
    _write(Path(given), units)
    items.sort(key=_order(items, units))


def unit_of(item: pytest.Item) -> str:
    """The name of the unit; a test that shares nothing is one of its own."""
    groups = sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group")})
    if groups:
        return "_".join(groups)
    return item.nodeid.partition("::")[0] if _shares_a_fixture(item) else item.nodeid


def _shares_a_fixture(item: pytest.Item) -> bool:
    info = getattr(item, "_fixtureinfo", None)
    known: Mapping[str, Sequence[pytest.FixtureDef[Any]]] = getattr(info, "name2fixturedefs", {})
    return any(found[-1].scope == "module" for found in known.values())


def _order(items: Sequence[pytest.Item], units: Mapping[str, str]) -> Any:
    sizes, latest = Counter(units.values()), Counter[str]()
    for item in items:
        unit = units[item.nodeid]
        latest[unit] = max(latest[unit], _rank(item))

    def key(item: pytest.Item) -> tuple[bool, int, int]:
        unit = units[item.nodeid]
        late = latest[unit]
        return unit != _WAITS, late, -sizes[unit] if late else 0

    return key


def _rank(item: pytest.Item) -> int:
    marks = [i for i, name in enumerate(_LATE, 1) if item.get_closest_marker(name)]
    return max(marks, default=0)


def _write(file: Path, units: Mapping[str, str]) -> None:
    """All workers write the same, whole at any time."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as made:
        json.dump(units, made)
    os.replace(made.name, file)
