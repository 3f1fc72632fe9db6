"""docs/reason-codes.md lists exactly the codes that the code gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kernel_gen.fusion.group import CONSTANT_CODE

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernel_gen", "cost_models", "db", "tuner", "graph_autofusion")
# Call -> position of the code among its arguments.
# Given through a name, or put in the place of another.
ELSEWHERE = {CONSTANT_CODE, "not-faster", "faster", "unmeasured", "unavailable", "invalid-input"}
CALLS = {
    "Refusal": 0,
    "RefusedError": 0,
    "_failed": 0,
    "Failure": 1,
    "FrameworkGroup": 3,
    "NotLowered": 1,
}


def literals(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def codes_in(tree: ast.Module) -> Iterator[str]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in CALLS:
                given = call.args[CALLS[name] :][:1]
                given += [word.value for word in call.keywords if word.arg == "code"]
                yield from (text for node in given for text in literals(node))
        if isinstance(call, ast.FunctionDef):
            pairs = zip(call.args.kwonlyargs, call.args.kw_defaults, strict=True)
            yield from (
                text
                for argument, default in pairs
                if argument.arg == "code" and default is not None
                for text in literals(default)
            )


def test_every_code_is_documented_and_every_documented_code_is_given():
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    given = {code for path in files for code in codes_in(ast.parse(path.read_text()))}
    given = {code for code in given if re.fullmatch(r"[a-z]+(-[a-z]+)*", code)}
    text = (ROOT / "docs/reason-codes.md").read_text()
    documented = re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert given | ELSEWHERE == set(documented)
