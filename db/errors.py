"""What the store raises besides the project's own errors."""

from __future__ import annotations

from kernel_gen.errors import GafError, InvalidInput, Unavailable


class LeaseLost(GafError, RuntimeError):
    """The job is no longer the caller's: its lease expired and was taken, or the job has ended.

    A driver that meets it stops work on the job and writes nothing more.
    """


class IdempotencyConflict(InvalidInput):
    """The same idempotency key came with another body."""


class QuotaExceeded(Unavailable):
    """The tenant has as many live jobs as it may have; retry when one has ended."""


class NotFound(InvalidInput):
    """No such graph, job, plan, artifact or key."""


class SchemaMismatch(Unavailable):
    """The database is at another revision than this program; run `gaf db upgrade`."""
