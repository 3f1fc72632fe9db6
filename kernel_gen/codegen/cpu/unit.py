"""A translation unit under construction: guarded helper blocks first, kernel functions after.

Every helper is static and stands in an `#ifndef` guard: kernels that are units of their own can be
linked into one object, and the texts of many kernels joined into one unit, without clashes.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.abi import KERNEL_ABI

_HEAD = "GAF_KERNEL_ABI"


class Unit:
    """Collects the helpers a kernel needs, each once, in the order of first use."""

    def __init__(self) -> None:
        self._helpers: dict[str, str] = {}
        self._functions: list[str] = []

    def helper(self, name: str, text: str) -> str:
        """Adds `text` under `name` unless it is there; returns `name`.

        A helper that needs another must ask for that one first.
        """
        self._helpers.setdefault(name, text.strip("\n"))
        return name

    def function(self, text: str) -> None:
        """Appends a function of the kernel itself."""
        self._functions.append(text.strip("\n"))

    def text(self) -> str:
        """The whole unit: ABI, helpers, functions."""
        blocks = [_guarded(_HEAD, KERNEL_ABI.strip("\n"))]
        blocks += [_guarded(f"H_{name}", text) for name, text in self._helpers.items()]
        return "\n".join([*blocks, *self._functions]) + "\n"


def _guarded(macro: str, text: str) -> str:
    return f"#ifndef {macro}\n#define {macro}\n{text}\n#endif"
