"""The tuning dashboard: server-rendered pages, vendored assets, no other host."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from service.dashboard.login import LoginNeeded, to_login
from service.dashboard.login import router as login_router
from service.dashboard.pages import router as pages_router
from service.dashboard.plan_pages import PlanViews
from service.dashboard.plan_pages import router as plans_router
from service.dashboard.templates import error_page

_STATIC = Path(__file__).parent.parent / "static"


def install_dashboard(app: FastAPI) -> None:
    """Pages under `/`, assets under `/static`, errors of pages as pages."""
    app.include_router(login_router)
    app.include_router(pages_router)
    app.include_router(plans_router)
    app.add_exception_handler(LoginNeeded, to_login)
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    app.state.error_page = error_page
    app.state.plan_views = PlanViews(app.state.context.store)
