"""Graphs: submitted once, named by their digest."""

from __future__ import annotations

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from kernel_gen.ir.serialize import graph_from_json
from service.context import Context, Reader, Shared, Submitter
from service.models import GraphView
from service.problems import Problem

router = APIRouter(prefix="/v1/graphs", tags=["graphs"])

_JSON = "application/json"
_BODY = {"requestBody": {"required": True, "content": {_JSON: {"schema": {"type": "object"}}}}}
_IMMUTABLE = {"Cache-Control": "private, max-age=31536000, immutable"}


@router.post("", status_code=201, openapi_extra=_BODY)
async def submit_graph(
    request: Request, response: Response, context: Shared, caller: Submitter
) -> GraphView:
    """Store a graph (its canonical JSON, `Graph.to_json()`); equal graphs have one id.

    Weights are never sent: a graph holds structure, types, value domains and small constants.
    """
    _require_json(request)
    view = await run_sync(_store, context, await request.body())
    response.headers["Location"] = f"/v1/graphs/{view.id}"
    return view


@router.get("/{graph_id}", response_class=Response, responses={200: {"content": {_JSON: {}}}})
def get_graph(graph_id: str, context: Shared, caller: Reader) -> Response:
    """The graph's canonical JSON."""
    return Response(context.store.graphs.text(graph_id), media_type=_JSON, headers=_IMMUTABLE)


@router.get(
    "/{graph_id}/svg", response_class=Response, responses={200: {"content": {"image/svg+xml": {}}}}
)
def get_graph_picture(graph_id: str, context: Shared, caller: Reader) -> Response:
    """The graph as a picture."""
    picture = context.pictures.graph(graph_id)
    return Response(picture, media_type="image/svg+xml", headers=_IMMUTABLE)


def _store(context: Context, body: bytes) -> GraphView:
    graph = graph_from_json(body)
    return GraphView(id=context.store.graphs.put(graph), nodes=len(graph.nodes))


def _require_json(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _JSON:
        raise Problem(
            415,
            "unsupported-graph-format",
            f"{media_type or 'no content type'}: send graph JSON as {_JSON}. ONNX and .pt2 files "
            "are converted on the client: gaf.Client(url).submit(model, example_inputs), or "
            "gaf.capture(model, example_inputs).to_json()",
            headers={"Accept-Post": _JSON},
        )
