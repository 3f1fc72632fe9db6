"""docs/reason-codes.md lists exactly the codes that the code gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernel_gen", "cost_models", "db", "tuner", "graph_autofusion")
# Call -> position of the code among its arguments.
# Put in the place of another.
ELSEWHERE = {"not-faster", "faster", "unmeasured", "unavailable", "invalid-input"}
CALLS = {
    "Refusal": 0,
    "RefusedError": 0,
    "_failed": 0,
    "Failure": 1,
    "FrameworkGroup": 3,
    "NotLowered": 1,
}


def constants_of(trees: list[ast.Module]) -> dict[str, str]:
    """Texts that a module gives a name in capitals."""
    return {
        target.id: statement.value.value
        for tree in trees
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name) and isinstance(statement.value.value, str)
    }


def codes_of(node: ast.expr, named: dict[str, str]) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        if isinstance(part, ast.Name) and part.id in named:
            yield named[part.id]


def codes_in(tree: ast.Module, named: dict[str, str]) -> Iterator[str]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in CALLS:
                given = call.args[CALLS[name] :][:1]
                given += [word.value for word in call.keywords if word.arg == "code"]
                yield from (text for node in given for text in codes_of(node, named))
        if isinstance(call, ast.FunctionDef):
            pairs = zip(call.args.kwonlyargs, call.args.kw_defaults, strict=True)
            yield from (
                text
                for argument, default in pairs
                if argument.arg == "code" and default is not None
                for text in codes_of(default, named)
            )


def test_every_code_is_documented_and_every_documented_code_is_given():
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    trees = [ast.parse(path.read_text()) for path in files]
    named = constants_of(trees)
    given = {code for tree in trees for code in codes_in(tree, named)}
    given = {code for code in given if re.fullmatch(r"[a-z]+(-[a-z]+)*", code)}
    text = (ROOT / "docs/reason-codes.md").read_text()
    documented = re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert given | ELSEWHERE == set(documented)
