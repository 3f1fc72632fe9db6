"""Pictures of graphs and plans, drawn once per content and kept for the next reader."""

from __future__ import annotations

from functools import lru_cache

from db.store import Store
from kernel_gen.runtime.dot import plan_to_dot, render, to_dot

_KEPT = 64


class Pictures:
    """SVG by the digest of what it shows. Raises NotFound, Unavailable."""

    def __init__(self, store: Store) -> None:
        self.graph = lru_cache(_KEPT)(
            lambda digest: render(to_dot(store.graphs.get(digest)), "svg")
        )
        self.plan = lru_cache(_KEPT)(
            lambda plan_id: render(plan_to_dot(store.plans.get(plan_id)), "svg")
        )
