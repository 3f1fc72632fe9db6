"""Jobs: asked for, watched, cancelled."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse

from db.jobs import Idempotency
from db.schema import Role
from db.tenants import Principal
from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.rules import load_rules
from kernel_gen.records import JobState
from kernel_gen.runtime.key import plan_key
from service.context import Reader, Shared, Submitter
from service.events import event_stream, first_sequence
from service.models import JobPage, JobSubmission, JobView, TrialPage, TrialView
from service.paging import Cursor, Limit, decode_cursor, encode_cursor
from service.problems import Problem
from service.targets import resolve_target

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post("", status_code=202)
def create_job(
    submission: JobSubmission,
    response: Response,
    context: Shared,
    caller: Submitter,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> JobView:
    """Ask for a plan. Equal wishes in flight are one job; a wish whose plan exists is a job that
    is born done, unless `force` is set. Another body under the same `Idempotency-Key` is 422.
    """
    request = submission.request()
    load_rules(request.rules or None)
    if request.training:
        raise InvalidInput("training: plans for backward graphs are not available in this version")
    graph = context.store.graphs.get(request.graph_digest)
    key = plan_key(
        graph,
        resolve_target(context.store, request.device, submission.target),
        numerics=request.numerics,
        training=request.training,
        rules=request.rules,
    )
    idempotency = None
    if idempotency_key is not None:
        body = submission.model_dump_json().encode()
        idempotency = Idempotency(idempotency_key, hashlib.sha256(body).hexdigest())
    created = context.store.jobs.create(request, key, caller.tenant, idempotency)
    response.headers["Location"] = f"/v1/jobs/{created.job.id}"
    return JobView.of(created.job)


@router.get("")
def list_jobs(
    context: Shared,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    state: JobState | None = None,
) -> JobPage:
    """Jobs of the caller's tenant (of all tenants for an administrator), newest first."""
    before = str(decode_cursor(cursor, str)[0]) if cursor else None
    jobs = context.store.jobs.list(
        tenant=visible_tenant(caller), state=state, before=before, limit=limit + 1
    )
    more = encode_cursor(jobs[limit - 1].id) if len(jobs) > limit else None
    return JobPage(jobs=[JobView.of(job) for job in jobs[:limit]], next=more)


@router.get("/{job_id}")
def get_job(job_id: str, context: Shared, caller: Reader) -> JobView:
    """One job."""
    return JobView.of(context.store.jobs.get(job_id))


@router.get("/{job_id}/trials")
def list_trials(
    job_id: str, context: Shared, caller: Reader, limit: Limit = 100, cursor: Cursor = None
) -> TrialPage:
    """What the job has tried so far, in order."""
    context.store.jobs.get(job_id)
    after = str(decode_cursor(cursor, str)[0]) if cursor else ""
    found = context.store.trials.of_job(job_id, after=after, limit=limit + 1)
    more = encode_cursor(found[limit - 1][0]) if len(found) > limit else None
    return TrialPage(trials=[TrialView.of(trial) for _, trial in found[:limit]], next=more)


@router.get(
    "/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "events as they happen"},
        204: {"description": "the job has ended and nothing came after `Last-Event-ID`"},
    },
)
def stream_events(
    job_id: str,
    request: Request,
    context: Shared,
    caller: Reader,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Response:
    """The job's history as server-sent events, from its beginning or after `Last-Event-ID`, until
    the job ends. Each replica can go on where another left off."""
    job = context.store.jobs.get(job_id)
    after = first_sequence(last_event_id)
    if job.state.is_terminal and not context.store.events.after(job_id, after, limit=1):
        return Response(status_code=204)
    stream = event_stream(context.store, job_id, after, context.settings.event_poll_seconds)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


@router.delete("/{job_id}")
def cancel_job(job_id: str, context: Shared, caller: Submitter) -> JobView:
    """Ask the job to end; the record stays. Harmless if it has ended."""
    job = context.store.jobs.get(job_id)
    if job.tenant != caller.tenant and not caller.may(Role.ADMIN):
        raise Problem(403, "other-tenant", "the job belongs to another tenant")
    return JobView.of(context.store.jobs.cancel(job_id))


def visible_tenant(caller: Principal) -> str | None:
    """Whose jobs a caller sees in lists; None for all."""
    return None if caller.may(Role.ADMIN) else caller.tenant
