"""The project's own files agree with one another."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from graph_autofusion.cli.app import app

ROOT = Path(__file__).resolve().parent.parent


def _services() -> dict[str, dict[str, object]]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services: dict[str, dict[str, object]] = compose["services"]
    return services


@pytest.mark.parametrize("name", [n for n, s in _services().items() if "build" in s])
def test_compose_runs_commands_that_exist(name: str) -> None:
    command = [str(word) for word in _services()[name]["command"]]  # type: ignore[attr-defined]
    found = typer.main.get_command(app)
    while command and not command[0].startswith("-"):
        found = found.commands[command.pop(0)]  # type: ignore[attr-defined]
    options = {option for parameter in found.params for option in parameter.opts}
    options |= {option for parameter in found.params for option in parameter.secondary_opts}
    assert {word for word in command if word.startswith("--")} <= options


def test_compose_keeps_what_must_outlive_its_containers() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    for name, held in (("db", "/var/lib/postgresql/data"), ("api", "GAF_SERVICE_KEY_FOLDER")):
        service = compose["services"][name]
        folder = service["environment"].get(held, held)
        (volume,) = (v for v in service["volumes"] if v.endswith(f":{folder}"))
        assert volume.split(":")[0] in compose["volumes"]
    assert f"--mode 700 {folder}" in (ROOT / "Dockerfile").read_text()  # its user may write there


def test_what_is_installed_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    names = {re.split(r"[<>=\[!~; ]", entry)[0].lower().replace("_", "-") for entry in wanted}
    assert names <= pinned


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md")),
    ],
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), target


def test_the_readme_names_make_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
