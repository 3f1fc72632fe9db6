"""Templates of the pages. Everything is escaped by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from service.context import context_of
from service.dashboard.group_view import protocol_text
from service.dashboard.numbers import (
    show_age,
    show_bytes,
    show_instant,
    show_rate,
    show_seconds,
    show_share,
    show_times,
    show_us,
)
from service.problems import Problem

_FOLDER = Path(__file__).parent.parent / "templates"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "us": show_us,
        "seconds": show_seconds,
        "age": show_age,
        "instant": show_instant,
        "rate": show_rate,
        "times": show_times,
        "share": show_share,
        "bytes": show_bytes,
        "protocol": protocol_text,
        "breakable": _breakable,
    }
    return environment


def _breakable(text: str) -> Markup:
    """The text, escaped; a narrow column may break it behind dots and underscores."""
    broken = str(escape(text)).replace(".", ".<wbr>").replace("_", "_<wbr>")
    return Markup(broken)


_ENVIRONMENT = _environment()


def page(request: Request, template: str, status_code: int = 200, **values: Any) -> Response:
    """A rendered page or fragment; never cached, since it shows what is now."""
    locked = bool(context_of(request).authenticator.wants_keys())
    text = _ENVIRONMENT.get_template(template).render(
        path=request.url.path, can_log_out=locked, **values
    )
    return Response(text, status_code, {"Cache-Control": "no-store"}, "text/html")


def error_page(request: Request, problem: Problem) -> Response:
    """A problem as a page."""
    response = page(request, "error.html", problem.status, problem=problem)
    response.headers.update(problem.headers)
    return response
