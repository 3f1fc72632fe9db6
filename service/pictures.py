"""Pictures of graphs and plans, drawn once per content and kept for the next reader."""

from __future__ import annotations

from functools import lru_cache

from db.store import Store
from kernel_gen.runtime.picture import graph_picture, plan_picture

_KEPT = 64


class Pictures:
    """SVG by the digest of what it shows. Raises NotFound, Unavailable."""

    def __init__(self, store: Store) -> None:
        self.graph = lru_cache(_KEPT)(lambda digest: graph_picture(store.graphs.get(digest)))
        self.plan = lru_cache(_KEPT)(lambda plan_id: plan_picture(store.plans.get(plan_id)))
