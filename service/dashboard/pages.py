"""The pages. Fragments (paths that end in /fragment) are the parts that a page refreshes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from db.schema import PlanStatus
from kernel_gen.records import JobState
from service.api.jobs import visible_tenant
from service.context import Context, Shared
from service.dashboard.login import Viewer
from service.dashboard.templates import page
from service.dashboard.views import kernel_rows, summarise
from service.paging import decode_cursor, encode_cursor

router = APIRouter(include_in_schema=False)
_PAGE = 50


@router.get("/")
def jobs_page(
    request: Request,
    context: Shared,
    viewer: Viewer,
    state: JobState | None = None,
    cursor: str | None = None,
) -> Response:
    values = _jobs(context, visible_tenant(viewer), state, cursor)
    return page(request, "jobs.html", **values)


@router.get("/jobs/fragment")
def jobs_fragment(
    request: Request,
    context: Shared,
    viewer: Viewer,
    state: JobState | None = None,
    cursor: str | None = None,
) -> Response:
    values = _jobs(context, visible_tenant(viewer), state, cursor)
    return page(request, "jobs_table.html", **values)


def _jobs(
    context: Context, tenant: str | None, state: JobState | None, cursor: str | None
) -> dict[str, Any]:
    before = str(decode_cursor(cursor, str)[0]) if cursor else None
    jobs = context.store.jobs.list(tenant=tenant, state=state, before=before, limit=_PAGE + 1)
    more = encode_cursor(jobs[_PAGE - 1].id) if len(jobs) > _PAGE else None
    return {
        "jobs": jobs[:_PAGE],
        "counts": context.store.jobs.counts(),
        "states": list(JobState),
        "state": state,
        "cursor": cursor,
        "more": more,
    }


@router.get("/jobs/{job_id}")
def job_page(job_id: str, request: Request, context: Shared, viewer: Viewer) -> Response:
    summary = summarise(context.store, context.store.jobs.get(job_id))
    return page(request, "job.html", summary=summary, job=summary.job)


@router.get("/jobs/{job_id}/fragment")
def job_fragment(job_id: str, request: Request, context: Shared, viewer: Viewer) -> Response:
    summary = summarise(context.store, context.store.jobs.get(job_id))
    return page(request, "job_summary.html", summary=summary, job=summary.job)


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
    plan = context.store.plans.get(plan_id)
    return page(request, "plan.html", row=row, plan=plan, kernels=kernel_rows(plan))


@router.get("/graphs/{graph_id}")
def graph_page(graph_id: str, request: Request, context: Shared, viewer: Viewer) -> Response:
    graph = context.store.graphs.get(graph_id)
    return page(request, "graph.html", graph_id=graph_id, graph=graph)


@router.get("/devices")
def devices_page(request: Request, context: Shared, viewer: Viewer) -> Response:
    return page(request, "devices.html", devices=context.store.devices.list())


@router.get("/devices/fragment")
def devices_fragment(request: Request, context: Shared, viewer: Viewer) -> Response:
    return page(request, "devices_table.html", devices=context.store.devices.list())
