"""Submitted graphs, by digest: canonical JSON in, canonical JSON out."""

from __future__ import annotations

import sqlalchemy as sa

from db.engine import Database
from db.errors import NotFound
from db.schema import graphs
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.serialize import graph_from_json


class Graphs:
    """The `graphs` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, graph: Graph) -> str:
        """Store a graph; returns its digest. Equal graphs are stored once."""
        digest = graph.digest
        with self._database.write() as connection:
            row = {
                "id": digest,
                "payload": graph.to_json(),
                "nodes": len(graph.nodes),
                "created_us": self._database.now_us(connection),
            }
            self._database.insert_ignore(connection, graphs, row)
        return digest

    def text(self, digest: str) -> str:
        """Canonical JSON of a graph; raises NotFound."""
        with self._database.read() as connection:
            found = connection.scalar(sa.select(graphs.c.payload).where(graphs.c.id == digest))
        if found is None:
            raise NotFound(f"no graph {digest[:64]!r}: submit it first")
        return str(found)

    def get(self, digest: str) -> Graph:
        """The graph; raises NotFound."""
        return graph_from_json(self.text(digest))

    def exists(self, digest: str) -> bool:
        with self._database.read() as connection:
            return (
                connection.scalar(sa.select(graphs.c.id).where(graphs.c.id == digest)) is not None
            )
