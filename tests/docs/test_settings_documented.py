"""docs/settings.md and docs/rest.md name exactly what the code has."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from service.settings import Settings

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernel_gen", "cost_models", "db", "tuner", "graph_autofusion", "service")
# Names in generated C++, and a mark that a parent process leaves for its child.
_NO_SETTINGS = {"GAF_PLAN_ABI", "GAF_KERNEL_ABI", "GAF_BARRIER", "GAF_SEARCH", "GAF_OK"}


def _rows(page: str) -> dict[str, str]:
    """First cell (a name in backquotes) of each table row, with the rest of the row."""
    text = (ROOT / "docs" / page).read_text()
    return dict(re.findall(r"^\| `([^`]+)` \|(.*)\|$", text, re.MULTILINE))


def _variables() -> set[str]:
    """Texts of the code that are names of environment variables."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= {node.value} & set(re.findall(r"GAF_[A-Z_]*[A-Z]", node.value))
    return found - _NO_SETTINGS


def test_every_variable_is_documented_and_no_other() -> None:
    fields = {f"GAF_SERVICE_{name.upper()}" for name in Settings.model_fields}
    documented = {name for name in _rows("settings.md") if name.startswith("GAF_")}
    assert documented == _variables() | fields


def test_defaults_of_the_service_are_those_of_the_page() -> None:
    rows = _rows("settings.md")
    for name in ("host", "port", "max_body_bytes", "event_poll_seconds"):
        default = Settings.model_fields[name].default
        assert f"`{default}`" in rows[f"GAF_SERVICE_{name.upper()}"], name


def test_every_call_of_the_service_is_documented_and_no_other() -> None:
    paths = json.loads((ROOT / "docs/openapi.json").read_text())["paths"]
    calls = {f"{method.upper()} {path}": at for path, at in paths.items() for method in at}
    documented = {name: row for name, row in _rows("rest.md").items() if "/" in name}
    assert set(documented) == set(calls)
    for call, row in documented.items():
        method, _, path = call.partition(" ")
        for parameter in paths[path][method.lower()].get("parameters", ()):
            if parameter["in"] != "path":
                assert f"`{parameter['name'].lower()}`" in row.lower(), (call, parameter["name"])


def test_every_problem_is_documented() -> None:
    codes = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", (ROOT / "docs/rest.md").read_text()))
    given: set[str] = set()
    for path in (ROOT / "service").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                given |= {a.value for a in node.args[1:2] if isinstance(a, ast.Constant)}
    from service.problems import _PROBLEMS

    assert given | {code for *_, code in _PROBLEMS} <= codes
