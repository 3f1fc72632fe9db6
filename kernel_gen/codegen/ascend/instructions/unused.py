"""Declarations of numbers that nothing in their scope mentions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernel_gen.codegen.ascend.instructions.steps import Body, Loop, Step

_DECLARED = re.compile(r"(?:const )?int(?:32|64)_t (\w+) = ")


def drop_unused(body: Body) -> None:
    """Removes declarations of numbers that nothing mentions in the body after them. Loops may
    declare the same names for themselves."""
    for at in reversed(range(len(body))):
        item = body[at]
        if isinstance(item, Loop):
            drop_unused(item.body)
        elif (found := _DECLARED.match(item.text)) and not _mentions(
            found[1], item.text[found.end() :], body[at + 1 :]
        ):
            del body[at]


def _mentions(name: str, rest: str, items: Sequence[Step | Loop]) -> bool:
    """Whether `rest`, or the items up to where the name is declared again, mention it."""
    word = re.compile(rf"\b{name}\b")
    if word.search(rest):
        return True
    for item in items:
        if isinstance(item, Loop):
            if _mentions(name, item.head, item.body):
                return True
            continue
        found = _DECLARED.match(item.text)
        again = found is not None and found[1] == name
        if word.search(item.text[found.end() :] if found and again else item.text):
            return True
        if again:
            return False
    return False
