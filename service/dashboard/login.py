"""Trading an API key for a cookie, and giving it back."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs, quote

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from db.schema import Role
from db.tenants import SESSION_US, Principal
from service.auth import COOKIE
from service.context import Shared, context_of
from service.dashboard.templates import page

router = APIRouter(include_in_schema=False)
_MAX_FORM_BYTES = 4096


class LoginNeeded(Exception):
    """A page that needs a key was asked for without one."""


async def _viewer(request: Request) -> Principal:
    principal = await context_of(request).authenticator.principal(request)
    if principal is None or not principal.may(Role.READ):
        raise LoginNeeded
    return principal


Viewer = Annotated[Principal, Depends(_viewer)]


async def to_login(request: Request, error: Exception) -> Response:
    """Sends the reader to the login page, and back afterwards."""
    return RedirectResponse(f"/login?next={quote(request.url.path)}", 303)


def own_path(path: str) -> str:
    """`path` if it is one of this server, else the front page."""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if plain and path.isprintable() else "/"


@router.get("/login")
def show_login(request: Request, next: str = "/") -> Response:
    return page(request, "login.html", next=own_path(next), failed=False)


@router.post("/login")
async def log_in(request: Request) -> Response:
    fields = parse_qs((await request.body())[:_MAX_FORM_BYTES].decode("utf-8", "replace"))
    key, path = (fields.get(name, [""])[-1].strip() for name in ("key", "next"))
    return await run_sync(_log_in, request, key, own_path(path))


def _log_in(request: Request, key: str, path: str) -> Response:
    token = context_of(request).store.tenants.create_session(key)
    if token is None:
        return page(request, "login.html", 403, next=path, failed=True)
    response = RedirectResponse(path, 303)
    response.set_cookie(
        COOKIE,
        token,
        max_age=SESSION_US // 1_000_000,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/logout")
def log_out(request: Request, context: Shared) -> Response:
    token = request.cookies.get(COOKIE)
    if token:
        context.store.tenants.end_session(token)
        context.authenticator.forget()
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response
