"""Declarations of numbers that nothing in a body mentions."""

from __future__ import annotations

import re

from kernel_gen.codegen.ascend.instructions.steps import Body, Loop, steps_of

_DECLARED = re.compile(r"^(?:const )?int(?:32|64)_t (\w+) = ", re.MULTILINE)


def drop_unused(body: Body) -> None:
    """Removes declarations of numbers that nothing mentions."""
    while True:
        text = "\n".join(s.text for s in steps_of(body)) + "\n".join(_heads(body))
        names = {m[1] for m in _DECLARED.finditer(text)}
        unused = {n for n in names if len(re.findall(rf"\b{n}\b", text)) == _count(n, text)}
        if not unused:
            return
        _remove(body, unused)


def _count(name: str, text: str) -> int:
    """How often a name is declared (each declaration mentions it once)."""
    return sum(m[1] == name for m in _DECLARED.finditer(text))


def _heads(body: Body) -> list[str]:
    loops = [item for item in body if isinstance(item, Loop)]
    return [head for loop in loops for head in (loop.head, *_heads(loop.body))]


def _remove(body: Body, names: set[str]) -> None:
    for item in list(body):
        if isinstance(item, Loop):
            _remove(item.body, names)
        elif (found := _DECLARED.match(item.text)) and found[1] in names:
            body.remove(item)
