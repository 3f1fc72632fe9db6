"""`gaf db`: who may use a service, and how much of its queue."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from graph_autofusion.cli.database import DbOption, opened_store
from graph_autofusion.cli.output import JsonFlag, print_result, print_rows

TenantOption = Annotated[str, typer.Option("--tenant", help="whose it is")]


class KeyRole(StrEnum):
    """What an API key may do; each role includes the ones before it."""

    READ = "read"
    SUBMIT = "submit"
    PUBLISH = "publish"
    ADMIN = "admin"


def create_key(
    name: Annotated[str, typer.Argument(help="what the key is for")],
    role: Annotated[KeyRole, typer.Option("--role", help="what it may do")] = KeyRole.SUBMIT,
    tenant: TenantOption = "default",
    db: DbOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Make an API key. It is shown once; the database keeps its hash only."""
    with opened_store(db) as store:
        from db.schema import Role

        secret = store.tenants.create_key(store.tenants.create(tenant), name, Role(role.value))
    print_result({"key": secret}, secret, as_json)


def keys(db: DbOption = "", as_json: JsonFlag = False) -> None:
    """List the API keys, oldest first."""
    with opened_store(db) as store:
        rows = [
            (key.id, key.name, key.role.value, key.tenant, _time(key.created_us),
             _time(key.revoked_us))
            for key in store.tenants.list_keys()
        ]  # fmt: skip
    columns = ("id", "name", "role", "tenant", "created", "revoked")
    print_rows(rows, columns, title="API keys", as_json=as_json)


def revoke_key(
    key: Annotated[str, typer.Argument(metavar="ID", help="as `gaf db keys` lists it")],
    db: DbOption = "",
    as_json: JsonFlag = False,
) -> None:
    """End an API key for good; running services notice within seconds."""
    with opened_store(db) as store:
        store.tenants.revoke_key(key)
    print_result({"revoked": key}, "revoked", as_json)


def queue_limit(
    limit: Annotated[int, typer.Argument(min=0, max=1_000_000, help="live jobs at once")],
    tenant: TenantOption = "default",
    db: DbOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Say how many queued and running jobs a tenant may have."""
    with opened_store(db) as store:
        store.tenants.set_queue_limit(store.tenants.create(tenant), limit)
    print_result({"tenant": tenant, "limit": limit}, f"{tenant}: {limit} live jobs", as_json)


def _time(us: int | None) -> str | None:
    """UTC microseconds as text."""
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC).isoformat("T", "seconds")
