"""The reference pages name what the code has."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import graph_autofusion as gaf
from graph_autofusion.cli.app import app
from graph_autofusion.job import Job

DOCS = Path(__file__).parents[2] / "docs"


def _commands(command: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    """Each command's full name with its options."""
    options = [text for item in command.params for text in (*item.opts, *item.secondary_opts)]
    yield name, [text for text in options if text.startswith("--")]
    for part, child in getattr(command, "commands", {}).items():
        yield from _commands(child, f"{name} {part}")


COMMANDS = list(_commands(typer.main.get_command(app), "gaf"))


@pytest.mark.parametrize(("name", "options"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_commands_and_options_are_documented(name: str, options: list[str]) -> None:
    text = (DOCS / "cli.md").read_text()
    if name in ("gaf", "gaf db", "gaf trust"):
        lines = [text]
    else:
        lines = [line for line in text.splitlines() if re.match(rf"\| `{name}[ `]", line)]
        if name == "gaf plans":
            lines = [line for line in lines if "revoke" not in line]
        assert len(lines) == 1
    if name == "gaf submit":
        lines += [line for line in text.splitlines() if line.startswith("| `gaf tune")]
    for option in options:
        assert any(option in line for line in lines), option


def test_no_command_is_documented_that_does_not_exist() -> None:
    known = {name for name, _ in COMMANDS}
    for row in re.findall(r"^\| `(gaf [^`]*)`", (DOCS / "cli.md").read_text(), re.MULTILINE):
        words = [word for word in row.split() if word == word.lower() and "[" not in word]
        assert " ".join(words) in known


PAGES = [
    DOCS.parent / "README.md",
    DOCS.parent / "CONTRIBUTING.md",
    *sorted(DOCS.rglob("*.md")),
    *sorted((DOCS.parent / "examples").glob("*.py")),
    *sorted((DOCS.parent / "service" / "templates").glob("*.html")),
]
_WRITTEN = re.compile(r"(?:^|[\s`(/>])gaf ([a-z][^`\n|#<\")]*)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_pages_tell_to_run_exist(page: Path) -> None:
    known = dict(COMMANDS)
    for written in _WRITTEN.findall(page.read_text()):
        name, words = "gaf", written.split()
        while words and f"{name} {words[0]}" in known:
            name = f"{name} {words.pop(0)}"
        assert name != "gaf", written
        for option in re.findall(r"--[a-z-]+", " ".join(words)):
            assert option in known[name], written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_make_targets_that_pages_name_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (DOCS.parent / "Makefile").read_text(), re.MULTILINE))
    for line in re.findall(r"^    (?:\w+=\S+ )*make ([a-z-]+)", page.read_text(), re.MULTILINE):
        assert line in targets
    for line in re.findall(r"`(?:\w+=\S+ )*make ([a-z-]+)", page.read_text()):
        assert line in targets


def _signature(function: Any, *, bound: bool) -> str:
    """`(a, b=1, *, c=2)`, without annotations."""
    found = inspect.signature(function)
    items = [item.replace(annotation=item.empty) for item in found.parameters.values()]
    kept = items[1:] if bound else items
    return str(inspect.Signature(kept))


def _documented() -> list[str]:
    text = (DOCS / "api.md").read_text()
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]


def test_functions_are_documented_with_their_signatures() -> None:
    lines = _documented()
    for name in ("optimize", "print_graph", "export_graph", "capture", "load"):
        assert f"gaf.{name}{_signature(getattr(gaf, name), bound=False)}" in lines
    for kind in (gaf.Budget, gaf.Client):
        assert f"gaf.{kind.__name__}{_signature(kind.__init__, bound=True)}" in lines


@pytest.mark.parametrize("kind", [gaf.Client, Job], ids=["Client", "Job"])
def test_methods_are_documented_with_their_signatures(kind: type) -> None:
    methods = inspect.getmembers(kind, inspect.isfunction)
    expected = {
        f"{kind.__name__}.{name}{_signature(method, bound=True)}"
        for name, method in methods
        if not name.startswith("_")
    }
    found = {line for line in _documented() if line.startswith(f"{kind.__name__}.")}
    assert found == expected


def test_all_public_names_and_report_fields_are_named() -> None:
    text = (DOCS / "api.md").read_text()
    for name in gaf.__all__:
        assert re.search(rf"\bgaf\.{name}\b", text), name
    for field in (*dataclasses.fields(gaf.FusionReport),):
        assert f"`{field.name}`" in text, field.name
