"""Alembic's entry: runs the migrations on the connection that `db.migrate` hands over."""

from __future__ import annotations

from alembic import context

from db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    compare_type=True,
    compare_server_default=False,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
