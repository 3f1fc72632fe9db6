"""Tenants and their API keys. A key is shown once; the database holds its hash only."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import sqlalchemy as sa
import uuid_utils

from db.engine import Database
from db.errors import NotFound
from db.schema import Role, api_keys, sessions, tenants

_KEY_BYTES = 32
SESSION_US = 12 * 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls, and what they may do."""

    tenant: str
    role: Role
    key_id: str | None = None

    def may(self, role: Role) -> bool:
        return self.role.rank >= role.rank


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A stored key, without its secret."""

    id: str
    tenant: str
    name: str
    role: Role
    created_us: int
    revoked_us: int | None


class Tenants:
    """The `tenants` and `api_keys` tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, queue_limit: int = 100) -> str:
        """The id of the tenant of this name, made if there is none (its limit then holds)."""
        with self._database.write() as connection:
            row = {
                "id": str(uuid_utils.uuid7()),
                "name": name,
                "queue_limit": queue_limit,
                "created_us": self._database.now_us(connection),
            }
            self._database.insert_ignore(connection, tenants, row)
            query = sa.select(tenants.c.id).where(tenants.c.name == name)
            return str(connection.execute(query).scalar_one())

    def set_queue_limit(self, tenant: str, limit: int) -> None:
        """How many live jobs a tenant may have; raises NotFound."""
        query = sa.update(tenants).where(tenants.c.id == tenant).values(queue_limit=limit)
        with self._database.write() as connection:
            if connection.execute(query).rowcount == 0:
                raise NotFound(f"no tenant {tenant!r}")

    def create_key(self, tenant: str, name: str, role: Role) -> str:
        """A new 256-bit key, which cannot be read again; raises NotFound."""
        secret = f"gaf_{secrets.token_urlsafe(_KEY_BYTES)}"
        with self._database.write() as connection:
            found = connection.scalar(sa.select(tenants.c.id).where(tenants.c.id == tenant))
            if found is None:
                raise NotFound(f"no tenant {tenant!r}")
            row = {
                "id": str(uuid_utils.uuid7()),
                "tenant_id": tenant,
                "name": name,
                "role": role.value,
                "sha256": _hash(secret),
                "created_us": self._database.now_us(connection),
            }
            connection.execute(sa.insert(api_keys).values(**row))
        return secret

    def verify(self, secret: str) -> Principal | None:
        """Who holds this key; None for an unknown or revoked one."""
        query = sa.select(api_keys).where(
            api_keys.c.sha256 == _hash(secret), api_keys.c.revoked_us.is_(None)
        )
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else Principal(row.tenant_id, Role(row.role), row.id)

    def create_session(self, secret: str) -> str | None:
        """A token that stands for a key for twelve hours; None for an unknown or revoked key."""
        principal = self.verify(secret)
        if principal is None:
            return None
        token = secrets.token_urlsafe(_KEY_BYTES)
        with self._database.write() as connection:
            now = self._database.now_us(connection)
            connection.execute(sa.delete(sessions).where(sessions.c.expires_us < now))
            row = {
                "sha256": _hash(token),
                "key_id": principal.key_id,
                "created_us": now,
                "expires_us": now + SESSION_US,
            }
            connection.execute(sa.insert(sessions).values(**row))
        return token

    def verify_session(self, token: str) -> Principal | None:
        """Who holds this token; None if it is unknown, too old or its key was revoked."""
        with self._database.read() as connection:
            query = (
                sa.select(api_keys)
                .join_from(sessions, api_keys)
                .where(sessions.c.sha256 == _hash(token), api_keys.c.revoked_us.is_(None))
                .where(sessions.c.expires_us > self._database.now_us(connection))
            )
            row = connection.execute(query).first()
        return None if row is None else Principal(row.tenant_id, Role(row.role), row.id)

    def end_session(self, token: str) -> None:
        with self._database.write() as connection:
            connection.execute(sa.delete(sessions).where(sessions.c.sha256 == _hash(token)))

    def list_keys(self) -> list[ApiKey]:
        """All keys, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(api_keys).order_by(api_keys.c.id)).all()
        return [
            ApiKey(r.id, r.tenant_id, r.name, Role(r.role), r.created_us, r.revoked_us)
            for r in rows
        ]

    def revoke_key(self, key_id: str) -> None:
        """End a key; API processes notice within seconds. Raises NotFound."""
        with self._database.write() as connection:
            now = self._database.now_us(connection)
            query = sa.update(api_keys).where(api_keys.c.id == key_id).values(revoked_us=now)
            if connection.execute(query).rowcount == 0:
                raise NotFound(f"no API key {key_id!r}")


def _hash(secret: str) -> str:
    # A fast hash is enough: the secret is 256 random bits, not a password.
    return hashlib.sha256(secret.encode()).hexdigest()
