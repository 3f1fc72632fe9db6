"""Errors as RFC 9457 problem details: one shape for every error of the API.

{"type": "urn:gaf:problem:not-found", "title": "Not Found", "status": 404,
 "code": "not-found", "detail": "no job 'x'", "instance": "/v1/jobs/x"}
"""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from db.errors import IdempotencyConflict, LeaseLost, NotFound, QuotaExceeded
from kernel_gen.errors import (
    GafError,
    InvalidGraph,
    InvalidInput,
    InvalidRules,
    Unavailable,
    UnsupportedModel,
    UntrustedBundle,
)

log = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
_RETRY_SECONDS = 2

# Most special first: the first entry that fits names the problem.
_PROBLEMS: tuple[tuple[type[GafError], int, str], ...] = (
    (NotFound, 404, "not-found"),
    (IdempotencyConflict, 422, "idempotency-conflict"),
    (QuotaExceeded, 429, "quota-exceeded"),
    (LeaseLost, 409, "lease-lost"),
    (UntrustedBundle, 422, "untrusted-bundle"),
    (InvalidGraph, 422, "invalid-graph"),
    (InvalidRules, 422, "invalid-rules"),
    (UnsupportedModel, 422, "unsupported-model"),
    (InvalidInput, 422, "invalid-input"),
    (Unavailable, 503, "unavailable"),
)


class Problem(Exception):
    """An error answer with a code of its own; `extra` are further members of the document."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers, self.extra = headers or {}, extra


def problem_response(problem: Problem, instance: str) -> Response:
    """The answer for a problem at the path `instance`."""
    content = {
        "type": f"urn:gaf:problem:{problem.code}",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "instance": instance,
        **problem.extra,
    }
    # Escaped to ASCII: a detail may quote half a surrogate pair, which UTF-8 does not have.
    return Response(json.dumps(content), problem.status, problem.headers, MEDIA_TYPE)


def _answer(request: Request, problem: Problem) -> Response:
    """A problem document, or the dashboard's error page for a browser that asked for a page."""
    page = getattr(request.app.state, "error_page", None)
    wants_page = "text/html" in request.headers.get("accept", "")
    if page is not None and wants_page and not request.url.path.startswith("/v1/"):
        return cast(Response, page(request, problem))
    return problem_response(problem, request.url.path)


def as_problem(error: GafError) -> Problem:
    """The problem that stands for one of the project's errors."""
    for kind, status, code in _PROBLEMS:
        if isinstance(error, kind):
            retry = {"Retry-After": str(_RETRY_SECONDS)} if status in (429, 503) else {}
            return Problem(status, code, str(error), headers=retry)
    return Problem(500, "internal", "an internal check failed; the server's log says more")


def install(app: FastAPI) -> None:
    """Answer every error of `app` as a problem."""
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(GafError, _on_gaf_error)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.add_exception_handler(Exception, _on_bug)


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _answer(request, error)


async def _on_gaf_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, GafError)
    problem = as_problem(error)
    if problem.status == 500:
        log.error("%s %s", request.method, request.url.path, exc_info=error)
    return _answer(request, problem)


async def _on_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [
        {"at": ".".join(str(step) for step in item["loc"]), "message": item["msg"]}
        for item in error.errors()
    ]
    malformed = any(item["type"] == "json_invalid" for item in error.errors())
    detail = "; ".join(f"{item['at']}: {item['message']}" for item in found[:5])
    if malformed:
        return _answer(request, Problem(400, "malformed-json", detail, errors=found))
    return _answer(request, Problem(422, "invalid-request", detail, errors=found))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    headers = dict(error.headers or {})
    problem = Problem(error.status_code, code, str(error.detail), headers=headers)
    return _answer(request, problem)


async def _on_disconnect(request: Request, error: Exception) -> Response:
    """Nobody reads this answer: it is counted, and no traceback is logged."""
    return _answer(request, Problem(400, "disconnected", "the client left in mid-request"))


async def _on_bug(request: Request, error: Exception) -> Response:
    problem = Problem(500, "internal", "an internal error; the server's log says more")
    return _answer(request, problem)
