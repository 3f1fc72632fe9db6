"""Plans: listed, looked up at deploy time, carried in and out as bundles, revoked."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from db.lookup import Hit, Miss, MissReason
from db.schema import PlanStatus, Role
from kernel_gen.errors import InvalidInput
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.requires import Caller
from service.bundles import MEDIA_TYPE
from service.context import Context, Publisher, Reader, Shared, context_of
from service.models import (
    LookupView,
    PlanDetail,
    PlanPage,
    PlanView,
    ProblemView,
    Revocation,
    TrustView,
)
from service.paging import Cursor, Limit, decode_cursor, encode_cursor
from service.problems import Problem

router = APIRouter(prefix="/v1", tags=["plans"])
lookup_router = APIRouter(prefix="/v1", tags=["plans"])  # first among all routes: it is the hot one

_IMMUTABLE = {"Cache-Control": "private, max-age=31536000, immutable"}
_REVALIDATE = "private, no-cache"
_SENTENCES = {
    MissReason.UNKNOWN: "no plan is known for this key: submit a job",
    MissReason.TUNING: "a job is working on this key",
    MissReason.OTHER_TARGET: "plans exist, for machines that this caller's is not",
    MissReason.VERSION: "a plan exists, for other versions than the caller has",
    MissReason.REVOKED: "the plan of this key was revoked",
}


def _query(name: str, description: str, *, required: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": description,
        "schema": {"type": "integer" if name == "abi" else "string"},
    }


_LOOKUP: dict[str, Any] = {
    "parameters": [
        _query("key", "a plan key", required=True),
        _query("features", "CPU features of the caller, separated by commas"),
        _query("abi", "version of the plan ABI that the caller speaks"),
        _query("torch", "the caller's torch version"),
        _query("libc", 'the caller\'s C library, "glibc 2.36"'),
        {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}},
    ]
}


@lookup_router.get(
    "/plans/lookup",
    response_class=Response,
    responses={
        200: {"model": LookupView},
        304: {"description": "the plan that `If-None-Match` names is still the one"},
        404: {"model": ProblemView, "description": "plan-miss with `reason` and `job`"},
    },
    openapi_extra=_LOOKUP,
)
async def lookup(request: Request) -> Response:
    """The plan for a key that the caller may run: exact, or of the same program for another
    target whose requirements the caller's features meet."""
    # Parsed here and answered as bytes: this path is asked thousands of times a second.
    context = context_of(request)
    await context.authenticator.require(request, Role.READ)
    key, caller = _parse_lookup(request.scope["query_string"].decode("latin-1"))
    answer = context.store.lookup(key, caller)
    if isinstance(answer, Miss):
        context.metrics.count_lookup(answer.reason.value)
        raise _miss(answer)
    context.metrics.count_lookup(answer.match)
    return _found(answer, request.headers.get("if-none-match", ""))


def _found(hit: Hit, known: str) -> Response:
    headers = {"ETag": hit.etag, "Cache-Control": _REVALIDATE}
    if hit.etag in known or known.strip() == "*":
        return Response(status_code=304, headers=headers)
    return Response(hit.body, media_type="application/json", headers=headers)


def _miss(miss: Miss) -> Problem:
    seconds = 2 if miss.reason is MissReason.TUNING else 60
    return Problem(
        404,
        "plan-miss",
        _SENTENCES[miss.reason],
        headers={"Retry-After": str(seconds)},
        reason=miss.reason.value,
        job=miss.job_id,
    )


@lru_cache(4096)
def _parse_lookup(query: str) -> tuple[str, Caller]:
    """Key and caller; raises InvalidInput."""
    values = {name: found[-1] for name, found in parse_qs(query).items()}
    # Targets hold "+", which means a blank in a query unless the caller escaped it; keys hold none.
    key = values.get("key", "").replace(" ", "+")
    if not key:
        raise InvalidInput("lookup: the query needs key=gaf1:…")
    abi = values.get("abi")
    if abi is not None and re.fullmatch("[0-9]{1,9}", abi) is None:
        raise InvalidInput(f"lookup: abi {abi[:20]!r} is not a number")
    features = frozenset(values.get("features", "").split(",")) - {""}
    number = None if abi is None else int(abi)
    return key, Caller(features, number, values.get("torch"), values.get("libc"))


@router.get("/plans")
def list_plans(
    context: Shared,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    status: PlanStatus | None = None,
    key: str | None = None,
) -> PlanPage:
    """Plans, newest first."""
    before = None
    if cursor:
        created_us, plan_id = decode_cursor(cursor, int, str)
        before = (int(created_us), str(plan_id))
    rows = context.store.plans.list(status=status, key=key, before=before, limit=limit + 1)
    last = rows[limit - 1] if len(rows) > limit else None
    more = None if last is None else encode_cursor(last.created_us, last.id)
    return PlanPage(plans=[PlanView.of(row) for row in rows[:limit]], next=more)


@router.get("/plans/{plan_id}")
def get_plan(plan_id: str, context: Shared, caller: Reader) -> PlanDetail:
    """One plan with its plan.json."""
    view = PlanView.of(context.store.plans.row(plan_id))
    return PlanDetail(**view.model_dump(), plan=json.loads(context.store.plans.text(plan_id)))


@router.get(
    "/plans/{plan_id}/svg",
    response_class=Response,
    responses={200: {"content": {"image/svg+xml": {}}}},
)
def get_plan_picture(plan_id: str, context: Shared, caller: Reader) -> Response:
    """The plan's program with its groups coloured."""
    picture = context.pictures.plan(plan_id)
    return Response(picture, media_type="image/svg+xml", headers=_IMMUTABLE)


@router.get(
    "/plans/{plan_id}/bundle",
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPE: {}}}, 410: {"model": ProblemView}},
)
def get_bundle(plan_id: str, context: Shared, caller: Reader) -> Response:
    """The signed bundle as an uncompressed tar. Revoked plans are not handed out."""
    if context.store.plans.row(plan_id).status is PlanStatus.REVOKED:
        raise Problem(410, "plan-revoked", f"plan {plan_id} was revoked")
    data = context.bundler.pack(context.store.plans.get(plan_id))
    headers = {"Content-Disposition": f'attachment; filename="{plan_id[:16]}.tar"'}
    return Response(data, media_type=MEDIA_TYPE, headers=headers)


_BUNDLE_BODY = {
    "requestBody": {
        "required": True,
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("/plans/import", status_code=201, openapi_extra=_BUNDLE_BODY)
async def import_plan(
    request: Request, response: Response, context: Shared, caller: Publisher
) -> PlanView:
    """Publish the plan of a bundle (an uncompressed tar) that a key trusted here has signed."""
    view = await run_sync(_import, context, await request.body())
    response.headers["Location"] = f"/v1/plans/{view.id}"
    return view


def _import(context: Context, body: bytes) -> PlanView:
    plan: Plan = context.bundler.unpack(body)
    context.store.graphs.put(plan.graph)
    return PlanView.of(context.store.plans.row(context.store.plans.publish(plan)))


@router.post("/plans/{plan_id}/revoke")
def revoke_plan(
    plan_id: str, revocation: Revocation, context: Shared, caller: Publisher
) -> PlanView:
    """Take a plan out of service for good; lookups notice within a second."""
    return PlanView.of(context.store.plans.revoke(plan_id, revocation.reason))


@router.get(
    "/artifacts/{sha256}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def get_artifact(sha256: str, context: Shared, caller: Reader) -> Response:
    """The bytes of a built object."""
    data = context.store.plans.artifact(sha256)
    return Response(data, media_type="application/octet-stream", headers=_IMMUTABLE)


@router.get("/trust")
def get_trust(context: Shared) -> TrustView:
    """The public key that signs this server's bundles; needs no API key."""
    key = context.bundler.public_key
    return TrustView(public_key=key.text, fingerprint=key.fingerprint)
