"""HTTP as the client needs it: short waits for a connection, retries, problems as typed errors."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from graph_autofusion.arguments import checked_url
from kernel_gen.errors import (
    GafError,
    InvalidGraph,
    InvalidInput,
    InvalidRules,
    Unavailable,
    UnsupportedModel,
    UntrustedBundle,
)

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 2.5  # a caller learns within 3 s that a service is away
_READ_SECONDS = 60.0
_SILENCE_SECONDS = 60.0  # a stream of events speaks at least every 15 s
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
_KINDS: dict[str, type[GafError]] = {
    "invalid-graph": InvalidGraph,
    "invalid-rules": InvalidRules,
    "unsupported-model": UnsupportedModel,
    "unsupported-graph-format": UnsupportedModel,
    "untrusted-bundle": UntrustedBundle,
}
Result = TypeVar("Result")


class Http:
    """One service over kept-alive connections. Thread-safe."""

    def __init__(
        self, url: str, api_key: str | None, transport: httpx2.BaseTransport | None = None
    ) -> None:
        import httpx2  # 0.1 s, which a process that finds its plan on disk need not pay

        self.url = checked_url("service", url)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.Client(base_url=self.url, headers=headers, transport=transport)
        self._lost = (httpx2.TransportError,)
        self._limits = functools.partial(httpx2.Timeout, connect=CONNECT_SECONDS)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        patience: float = CONNECT_SECONDS,
        timeout: float = _READ_SECONDS,
    ) -> httpx2.Response:
        """The answer, whatever its status, once a server has given one.

        Lost connections and "busy" (503) are tried again for `patience` seconds, so requests must
        be harmless when repeated. `timeout` is how long a connected server may be silent, seconds.
        Raises Unavailable.
        """
        limits = self._limits(timeout)

        def ask() -> httpx2.Response:
            answer = self._client.request(
                method, path, params=params, content=content, headers=headers, timeout=limits
            )
            if answer.status_code == 503:
                raise _Busy(error_of(answer))
            return answer

        return self._retry(ask, patience)

    def read(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """As `request`, but an answer that is an error raises it."""
        answer = self.request(method, path, **options)
        if answer.status_code >= 400:
            raise error_of(answer)
        return answer

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
        """A response that is read while it comes; raises Unavailable when the connection breaks."""
        limits = self._limits(_SILENCE_SECONDS)
        try:
            with self._client.stream("GET", path, headers=headers, timeout=limits) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    raise error_of(answer)
                yield answer
        except self._lost as error:
            raise self._unreachable(error) from error

    def close(self) -> None:
        self._client.close()

    def _retry(self, ask: Callable[[], Result], patience: float) -> Result:
        deadline = time.monotonic() + patience
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return ask()
            except (*self._lost, _Busy) as error:
                if time.monotonic() + pause > deadline:
                    raise self._unreachable(error) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _unreachable(self, error: Exception) -> Unavailable:
        if isinstance(error, _Busy):
            return error.cause
        here = urlsplit(self.url).hostname in _LOOPBACK
        hint = "; `gaf serve` starts one, over this user's own plans" if here else ""
        reason = error or type(error).__name__
        return Unavailable(f"service {self.url} cannot be reached: {reason}{hint}")


class _Busy(Exception):
    """The server said 503."""

    def __init__(self, cause: GafError) -> None:
        super().__init__(str(cause))
        self.cause = cause if isinstance(cause, Unavailable) else Unavailable(str(cause))


def error_of(answer: httpx2.Response) -> GafError:
    """The typed error for an answer of status 400 and above."""
    problem = problem_of(answer)
    code = str(problem.get("code", ""))
    text = (
        f"service: {problem.get('detail') or answer.reason_phrase} [{code or answer.status_code}]"
    )
    if code in _KINDS:
        return _KINDS[code](text)
    if answer.status_code in (429, 500, 502, 503, 504):
        return Unavailable(text)
    return InvalidInput(text)


def problem_of(answer: httpx2.Response) -> dict[str, Any]:
    """The problem details of an answer; empty if it holds none."""
    try:
        found = json.loads(answer.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
