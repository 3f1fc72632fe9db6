"""Pages of plans: the list, one plan, one of its groups, two plans side by side."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from db.plans import PlanRow
from db.schema import PlanStatus
from db.store import Store
from service.context import Context, Shared
from service.dashboard.compare_view import compare
from service.dashboard.group_view import GroupView, group_view
from service.dashboard.login import Viewer
from service.dashboard.plan_view import PlanView, plan_view
from service.dashboard.templates import page
from service.paging import decode_cursor, encode_cursor

router = APIRouter(include_in_schema=False)
_PAGE = 50
_KEPT = 32  # views of plans, which never change once they are published
_SAME_KEY = 20


class PlanViews:
    """Views by plan id, made once. Raises NotFound."""

    def __init__(self, store: Store) -> None:
        self.get = lru_cache(_KEPT)(lambda plan_id: plan_view(store, plan_id))


def _view(request: Request, plan_id: str) -> PlanView:
    found: PlanView = request.app.state.plan_views.get(plan_id)
    return found


@router.get("/plans")
def plans_page(
    request: Request,
    context: Shared,
    viewer: Viewer,
    status: PlanStatus | None = None,
    cursor: str | None = None,
) -> Response:
    before = None
    if cursor:
        created_us, plan_id = decode_cursor(cursor, int, str)
        before = (int(created_us), str(plan_id))
    rows = context.store.plans.list(status=status, before=before, limit=_PAGE + 1)
    last = rows[_PAGE - 1] if len(rows) > _PAGE else None
    more = None if last is None else encode_cursor(last.created_us, last.id)
    values: dict[str, Any] = {
        "plans": rows[:_PAGE],
        "status": status,
        "statuses": list(PlanStatus),
        "more": more,
    }
    return page(request, "plans.html", **values)


@router.get("/plans/{plan_id}")
def plan_page(plan_id: str, request: Request, context: Shared, viewer: Viewer) -> Response:
    row = context.store.plans.row(plan_id)
    others = _others(context, row)
    return page(request, "plan.html", row=row, view=_view(request, plan_id), others=others)


def _others(context: Context, row: PlanRow) -> list[PlanRow]:
    """Other plans of the same key, newest first."""
    found = context.store.plans.list(key=row.key, limit=_SAME_KEY)
    return [other for other in found if other.id != row.id]


@router.get("/plans/{plan_id}/groups/{number}")
def group_page(
    plan_id: str, number: int, request: Request, context: Shared, viewer: Viewer
) -> Response:
    return page(request, "group.html", **_group(request, context, plan_id, number))


@router.get("/plans/{plan_id}/groups/{number}/fragment")
def group_fragment(
    plan_id: str, number: int, request: Request, context: Shared, viewer: Viewer
) -> Response:
    values = _group(request, context, plan_id, number)
    return page(request, "group_detail.html", **values)


def _group(request: Request, context: Context, plan_id: str, number: int) -> dict[str, Any]:
    view = _view(request, plan_id)
    group: GroupView = group_view(context.store, view, number)
    return {"plan_id": plan_id, "view": view, "group": group}


@router.get("/compare")
def compare_page(
    request: Request,
    context: Shared,
    viewer: Viewer,
    plan: Annotated[list[str] | None, Query(max_length=_PAGE)] = None,
) -> Response:
    """Two plans; with less or more than two, how to choose them."""
    chosen = [found.strip() for found in plan or [] if found.strip()]
    if len(chosen) != 2:
        listed = context.store.plans.list(limit=_PAGE)
        sides = list(zip(("First", "Second"), [*chosen, "", ""], strict=False))
        return page(request, "compare_choose.html", plans=listed, chosen=chosen, sides=sides)
    views = [_view(request, plan_id) for plan_id in chosen]
    rows = [context.store.plans.row(plan_id) for plan_id in chosen]
    return page(request, "compare.html", found=compare(*views), rows=rows)
