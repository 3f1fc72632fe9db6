"""Pages of jobs, graphs and devices. Fragments (paths that end in /fragment) are the parts that a
page refreshes or asks for when they are wanted."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from db.errors import NotFound
from db.schema import Role
from db.tenants import Principal
from kernel_gen.records import JobState
from service.api.jobs import cancel_job, visible_tenant
from service.context import Context, Shared, Submitter
from service.dashboard.group_view import op_row
from service.dashboard.job_view import summarise
from service.dashboard.login import Viewer
from service.dashboard.nest_view import foreseen, nest_rows, nest_view, tuned_trials
from service.dashboard.queue_view import lookups_of, queue_view
from service.dashboard.templates import page
from service.paging import decode_cursor, encode_cursor

router = APIRouter(include_in_schema=False)
_PAGE = 50
_RECENT = 500  # jobs among which those of a graph are looked for


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


@router.get("/jobs")
def jobs_moved(request: Request) -> Response:
    """The start page is the page of jobs."""
    return RedirectResponse(f"/?{request.url.query}" if request.url.query else "/", 308)


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
    plans = {job.plan_id for job in jobs[:_PAGE]} - {None}
    return {
        "jobs": jobs[:_PAGE],
        "results": {plan_id: context.store.plans.row(str(plan_id)) for plan_id in plans},
        "counts": context.store.jobs.counts(),
        "states": list(JobState),
        "state": state,
        "cursor": cursor,
        "more": more,
    }


@router.get("/jobs/{job_id}")
def job_page(job_id: str, request: Request, context: Shared, viewer: Viewer) -> Response:
    values = _job(context, viewer, job_id) | _search(context, job_id)
    return page(request, "job.html", **values)


@router.get("/jobs/{job_id}/fragment")
def job_fragment(job_id: str, request: Request, context: Shared, viewer: Viewer) -> Response:
    return page(request, "job_summary.html", **_job(context, viewer, job_id))


def _job(context: Context, viewer: Principal, job_id: str) -> dict[str, Any]:
    job = context.store.jobs.get(job_id)
    own = viewer.may(Role.SUBMIT) and (job.tenant == viewer.tenant or viewer.may(Role.ADMIN))
    return {"summary": summarise(context.store, job), "job": job, "may_cancel": own}


@router.post("/jobs/{job_id}/cancel")
def cancel(job_id: str, context: Shared, caller: Submitter) -> Response:
    cancel_job(job_id, context, caller)
    return RedirectResponse(f"/jobs/{quote(job_id)}", 303)


@router.get("/jobs/{job_id}/nests/fragment")
def nests_fragment(job_id: str, request: Request, context: Shared, viewer: Viewer) -> Response:
    job = context.store.jobs.get(job_id)
    return page(request, "job_nests.html", job=job, **_search(context, job_id))


def _search(context: Context, job_id: str) -> dict[str, Any]:
    """What the search over tilings has found so far."""
    job = context.store.jobs.get(job_id)
    trials = tuned_trials(context.store, job)
    nests = nest_rows(trials, context.store.trials.ops(job.id))
    return {"nests": nests, "foreseen": foreseen(trials, job.id)}


@router.get("/jobs/{job_id}/nests/{digest}")
def nest_page(
    job_id: str,
    digest: str,
    request: Request,
    context: Shared,
    viewer: Viewer,
    template: str | None = None,
) -> Response:
    job = context.store.jobs.get(job_id)
    return page(request, "nest.html", job=job, nest=nest_view(context.store, job, digest, template))


@router.get("/graphs/{graph_id}")
def graph_page(graph_id: str, request: Request, context: Shared, viewer: Viewer) -> Response:
    graph = context.store.graphs.get(graph_id)
    recent = context.store.jobs.list(tenant=visible_tenant(viewer), limit=_RECENT)
    jobs = [job for job in recent if job.request.graph_digest == graph_id]
    return page(request, "graph.html", graph_id=graph_id, graph=graph, jobs=jobs[:_PAGE])


@router.get("/graphs/{graph_id}/nodes/{number}/fragment")
def node_fragment(
    graph_id: str, number: int, request: Request, context: Shared, viewer: Viewer
) -> Response:
    graph = context.store.graphs.get(graph_id)
    if not 0 <= number < len(graph.nodes):
        raise NotFound(f"graph {graph_id[:16]} has no node {number}")
    node = graph.nodes[number]
    return page(request, "node.html", op=op_row(graph, number), node=node)


@router.get("/devices")
def devices_page(request: Request, context: Shared, viewer: Viewer) -> Response:
    return page(request, "devices.html", queue=_queue(context, visible_tenant(viewer)))


@router.get("/devices/fragment")
def devices_fragment(request: Request, context: Shared, viewer: Viewer) -> Response:
    return page(request, "devices_table.html", queue=_queue(context, visible_tenant(viewer)))


def _queue(context: Context, tenant: str | None) -> Any:
    lookups = lookups_of(context.metrics.lookups(), context.metrics.since_us)
    return queue_view(context.store, tenant, lookups)
