"""Connections to PostgreSQL that give up a server which has them wait.

A server that is stopped, or whose machine hangs, keeps its connections open: the keepalives of the
system see nothing, and a caller would wait for ever.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen

ANSWER_SECONDS = 20.0


class AnsweringConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server says nothing for `answer_seconds`; None waits."""

    answer_seconds: float | None = ANSWER_SECONDS

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """As psycopg waits; raises OperationalError when the time is up."""
        limit = self.answer_seconds if timeout is None else timeout
        start = time.monotonic()
        try:
            return super().wait(gen, interval, limit)
        except psycopg.OperationalError as error:
            if timeout is not None or limit is None or time.monotonic() - start < limit:
                raise
            self.close()  # in the midst of an answer it is of no more use
            raise psycopg.OperationalError(f"no answer within {limit:g} s") from error
