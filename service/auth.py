"""Who calls: an API key in the Authorization header, or the dashboard's cookie.

A server without any key that listens on a loopback address lets everyone on the machine in, as
the administrator of the default tenant. Anywhere else a request without a key is refused.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from anyio.to_thread import run_sync
from fastapi import Request

from db.schema import DEFAULT_TENANT, Role
from db.store import Store
from db.tenants import Principal
from service.problems import Problem

COOKIE = "gaf_session"
_REMEMBERED_SECONDS = 2.0
_REMEMBERED = 1000
_EVERYONE = Principal(DEFAULT_TENANT, Role.ADMIN)


class Authenticator:
    """Principals of requests. Remembers answers for two seconds, so that a revoked key ends soon
    and a busy client costs no read per request."""

    def __init__(
        self, store: Store, *, loopback: bool, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._loopback = loopback
        self._monotonic = monotonic
        self._known: OrderedDict[tuple[str, str], tuple[float, Principal | None]] = OrderedDict()

    async def principal(self, request: Request) -> Principal | None:
        """Who calls; None for nobody that is known."""
        asked = _credential(request)
        now = self._monotonic()
        found = self._known.get(asked)
        if found is not None and found[0] > now:
            return found[1]
        principal = await run_sync(self._ask, asked)
        self._known[asked] = (now + _REMEMBERED_SECONDS, principal)
        self._known.move_to_end(asked)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return principal

    async def require(self, request: Request, role: Role) -> Principal:
        """Who calls, if they may act as `role`; raises Problem 401 or 403."""
        principal = await self.principal(request)
        if principal is None:
            raise Problem(
                401,
                "no-valid-key",
                "send an API key: Authorization: Bearer gaf_… (gaf takes it from GAF_API_KEY)",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not principal.may(role):
            raise Problem(403, "role-too-low", f"this key may {principal.role}, not {role}")
        return principal

    def wants_keys(self) -> bool:
        """Whether callers must show a key."""
        return not self._loopback or bool(self._store.tenants.list_keys())

    def forget(self) -> None:
        """Ask the store again at the next request."""
        self._known.clear()

    def _ask(self, credential: tuple[str, str]) -> Principal | None:
        kind, secret = credential
        if kind == "key":
            return self._store.tenants.verify(secret)
        if kind == "session":
            principal = self._store.tenants.verify_session(secret)
            if principal is not None:
                return principal
        return None if self.wants_keys() else _EVERYONE


def _credential(request: Request) -> tuple[str, str]:
    header = request.headers.get("authorization", "")
    scheme, _, secret = header.partition(" ")
    if scheme.lower() == "bearer":
        return "key", secret.strip()
    token = request.cookies.get(COOKIE)
    return ("session", token) if token else ("nobody", "")
