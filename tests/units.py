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
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_LATE = ("postgres", "browser", "slow", "ray")
_FILE = "gaf_units"
_SECONDS = Path(__file__).with_name("unit_seconds.json")  # of `make test-times`
_RECORDED = 1.0  # seconds of a unit that is worth a line there
_SLOW, _PLAIN = 10.0, 0.5  # seconds of a test of a unit that is not there yet


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-seconds", metavar="FILE", help="write there what the units take")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--record-seconds", default=None)
    if path and config.getvalue("dist") != "no":
        config.pluginmanager.register(_Recorder(config, Path(path)))


class _Recorder:
    """Adds up what the tests of each unit take, and writes it down at the end."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config, self._path = config, path
        self._seconds = defaultdict[str, float](float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    @pytest.hookimpl(tryfirst=True)  # before the folder of this run is cleaned up
    def pytest_sessionfinish(self) -> None:
        units, took = json.loads(_file(self._config).read_text()), defaultdict[str, float](float)
        for nodeid, seconds in self._seconds.items():
            took[units.get(nodeid, nodeid)] += seconds
        kept = {unit: round(took[unit]) for unit in sorted(took) if took[unit] >= _RECORDED}
        self._path.write_text(json.dumps(kept, indent=1) + "\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs servers or much time comes last, so that a plain fault shows in seconds; units
    that take longer before others, so that the workers end together."""
    units = {item.nodeid: unit_of(item) for item in items}
    given = getattr(config, "workerinput", {}).get(_FILE)
    if given is None:
        items.sort(key=_rank)
        return
    _write(Path(given), units)
    seconds = json.loads(_SECONDS.read_text()) if _SECONDS.exists() else {}
    items.sort(key=_order(items, units, seconds))


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


def _order(
    items: Sequence[pytest.Item], units: Mapping[str, str], seconds: Mapping[str, float]
) -> Any:
    guessed = defaultdict[str, float](float)
    for item in items:
        guessed[units[item.nodeid]] += _SLOW if item.get_closest_marker("slow") else _PLAIN
    late = {units[item.nodeid] for item in items if _rank(item)}

    def key(item: pytest.Item) -> tuple[bool, float]:
        unit = units[item.nodeid]
        took = seconds.get(unit, guessed[unit])
        return unit in late, -took if unit in late else 0.0

    return key


def _rank(item: pytest.Item) -> int:
    marks = [i for i, name in enumerate(_LATE, 1) if item.get_closest_marker(name)]
    return max(marks, default=0)


def _write(file: Path, units: Mapping[str, str]) -> None:
    """All workers write the same, whole at any time."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as made:
        json.dump(units, made)
    os.replace(made.name, file)
