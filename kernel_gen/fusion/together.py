"""Keeping nodes in one kernel where a rule asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernel_gen.fusion.group import FusionGroup, Group


def keep_together(groups: Sequence[Group], pairs: Iterable[frozenset[int]]) -> list[Group]:
    """The groups that hold each cluster of paired nodes as a whole or not at all.

    A cluster that no kernel holds as a whole is left alone: a rule may not make a program
    impossible to cover.
    """
    kept = list(groups)
    for cluster in _clusters(pairs):
        holders = [g for g in kept if isinstance(g, FusionGroup) and cluster <= set(g.nodes)]
        if holders:
            kept = [g for g in kept if cluster <= set(g.nodes) or not cluster & set(g.nodes)]
    return kept


def _clusters(pairs: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Pairs with common nodes joined: {1, 2}, {2, 3}, {5, 6} -> {1, 2, 3}, {5, 6}."""
    found: list[frozenset[int]] = []
    for pair in sorted(pairs, key=sorted):
        joined = pair.union(*(c for c in found if c & pair))
        found = [c for c in found if not c & pair] + [joined]
    return found
