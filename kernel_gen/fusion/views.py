"""Views as index maps: from the index of an element of the view to that of its source."""

from __future__ import annotations

import math

from kernel_gen.errors import Refusal
from kernel_gen.fusion.affine import ZERO, Extents, divide, linear, remainder
from kernel_gen.ir.graph import Node
from kernel_gen.ir.index import Index
from kernel_gen.ir.types import Dim, Shape

Indices = tuple[Index, ...]


class RefusedError(Exception):
    """Unwinds a lowering; `lower` turns it into the Refusal it carries."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.refusal = Refusal(code, sentence)


def source_index(
    node: Node, source: Shape, result: Shape, at: Indices, extents: Extents
) -> Indices:
    """Where element `at` of the view `node` lies in its operand of shape `source`."""
    match node.op:
        case "permute":
            dims = int_tuple(node, "dims")
            return tuple(at[dims.index(d)] for d in range(len(source)))
        case "expand":
            return broadcast_index(source, result, at)
        case "slice":
            dim = int_attr(node, "dim")
            moved = at[dim] * int_attr(node, "step") + int_attr(node, "start")
            return (*at[:dim], moved, *at[dim + 1 :])
        case "flip":
            flipped = int_tuple(node, "dims")
            return tuple(
                at[d] * -1 + (known(extent, node) - 1) if d in flipped else at[d]
                for d, extent in enumerate(source)
            )
        case "reshape":
            return reshape_index(node, source, result, at, extents)
    raise RefusedError("unsupported-op", f"{node.op} has no index map")


def broadcast_index(source: Shape, result: Shape, at: Indices) -> Indices:
    """NumPy broadcasting: leading dimensions fall away, extents of 1 are read at 0."""
    aligned = at[len(result) - len(source) :]
    return tuple(ZERO if extent == 1 else i for extent, i in zip(source, aligned, strict=True))


def reshape_index(
    node: Node, source: Shape, result: Shape, at: Indices, extents: Extents
) -> Indices:
    """Runs of dimensions with equal products are matched; within a run, split the linear position.

    (6, 4) viewed as (2, 3, 4): runs 6 = 2·3 and 4 = 4, so [a, b, c] lies at [3·a + b, c].
    """
    found = [ZERO] * len(source)
    for here, there in _runs(node, source, result):
        if len(here) == 1 and len(there) == 1:
            found[here[0]] = at[there[0]]
            continue
        shape = tuple(known(result[d], node) for d in there)
        rest = linear(tuple(at[d] for d in there), shape)
        for d in reversed(here[1:]):
            extent = known(source[d], node)
            found[d] = remainder(rest, extent, extents)
            rest = divide(rest, extent, extents)
        found[here[0]] = rest
    return tuple(found)


def _runs(node: Node, source: Shape, result: Shape) -> list[tuple[list[int], list[int]]]:
    """Positions of dimensions (extents of 1 left out) in matching runs of equal products."""
    left = [d for d, extent in enumerate(source) if extent != 1]
    right = [d for d, extent in enumerate(result) if extent != 1]
    runs: list[tuple[list[int], list[int]]] = []
    while left or right:
        here, there = [left.pop(0)], [right.pop(0)]
        while not _equal(source, here, result, there):
            size_here = math.prod(known(source[d], node) for d in here)
            size_there = math.prod(known(result[d], node) for d in there)
            grow, pool = (here, left) if size_here < size_there else (there, right)
            if not pool:
                raise RefusedError("symbolic-reshape", f"reshape {source} to {result}")
            grow.append(pool.pop(0))
        runs.append((here, there))
    return runs


def _equal(source: Shape, here: list[int], result: Shape, there: list[int]) -> bool:
    if len(here) == 1 and len(there) == 1:
        return source[here[0]] == result[there[0]]
    sizes = [source[d] for d in here], [result[d] for d in there]
    if any(not isinstance(size, int) for side in sizes for size in side):
        return False
    first, second = (math.prod(s for s in side if isinstance(s, int)) for side in sizes)
    return first == second


def known(extent: Dim, node: Node) -> int:
    """A static extent; refuses the lowering where it is symbolic."""
    if isinstance(extent, int):
        return extent
    raise RefusedError(
        "symbolic-extent", f"{node.op} {node.name}: extent {extent.name} is symbolic"
    )


def int_attr(node: Node, key: str) -> int:
    """An integer attribute of a verified node."""
    value = node.attr(key)
    if not isinstance(value, int):
        raise RefusedError("bad-attribute", f"{node.op} {node.name}: {key}={value!r}")
    return value


def int_tuple(node: Node, key: str) -> tuple[int, ...]:
    """An attribute that is a tuple of integers, of a verified node."""
    value = node.attr(key)
    if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
        raise RefusedError("bad-attribute", f"{node.op} {node.name}: {key}={value!r}")
    return tuple(v for v in value if isinstance(v, int))
