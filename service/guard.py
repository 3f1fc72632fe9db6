"""What every request passes before it reaches a route: host, origin, size; and answer headers."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.metrics import Metrics
from service.problems import Problem, problem_response

_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANY_ADDRESS = ("0.0.0.0", "::", "")
_CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_ANSWER_HEADERS = (
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # "no-referrer" would hide the origin of our own forms
    (b"cross-origin-resource-policy", b"same-origin"),
)


def known_hosts(host: str, allowed: Iterable[str]) -> frozenset[str] | None:
    """Names that a Host header may carry; None if the server cannot know its own names."""
    names = {name.lower() for name in allowed}
    if host in _ANY_ADDRESS and not names:
        return None
    return frozenset(names | {host.lower(), *_LOOPBACK})


def host_name(value: str) -> str:
    """The name of a Host header: `[::1]:80` -> `::1`."""
    try:
        return (urlsplit(f"//{value}").hostname or "").lower()
    except ValueError:
        return ""


class Guard:
    """Refuses requests from other sites and bodies that are too large; adds answer headers."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: frozenset[str] | None,
        max_body_bytes: int,
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._max_body_bytes = max_body_bytes
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_ANSWER_HEADERS]
                self._metrics.count_response(message["status"])
            await send(message)

        refused = self._refuse(scope["method"], Headers(scope=scope))
        if refused is not None:
            await problem_response(refused, scope["path"])(scope, receive, answer)
            return
        await self._app(scope, self._limited(receive), answer)

    def _refuse(self, method: str, headers: Headers) -> Problem | None:
        host = host_name(headers.get("host", ""))
        if self._hosts is not None and host not in self._hosts:
            return Problem(
                421, "wrong-host", f"this server is not {host[:100]!r}; allowed_hosts names others"
            )
        if method not in _SAFE_METHODS and not _same_site(headers, host):
            return Problem(403, "cross-site", "requests from pages of other sites are refused")
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._max_body_bytes:
            return self._too_large()
        return None

    def _too_large(self) -> Problem:
        return Problem(413, "body-too-large", f"a body has at most {self._max_body_bytes} bytes")

    def _limited(self, receive: Receive) -> Receive:
        """Counts what is received: a body without a length header is cut off at the limit."""
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_body_bytes:
                raise HTTPException(413, self._too_large().detail)
            return message

        return limited


def _same_site(headers: Headers, host: str) -> bool:
    """Browsers tell where a request comes from; other clients send neither header."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        return host_name(urlsplit(origin).netloc) == host
    except ValueError:
        return False
