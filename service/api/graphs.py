"""Graphs: submitted once, named by their digest."""

from __future__ import annotations

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response

from kernel_gen.ir.serialize import graph_from_json
from service.context import Context, Reader, Shared, Submitter
from service.conversion import MEDIA_TYPES, convert
from service.models import GraphView
from service.problems import Problem

router = APIRouter(prefix="/v1/graphs", tags=["graphs"])

_JSON = "application/json"
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT = {_JSON: {"schema": {"type": "object"}}} | dict.fromkeys(MEDIA_TYPES, _BINARY)
_BODY = {"requestBody": {"required": True, "content": _CONTENT}}
_IMMUTABLE = {"Cache-Control": "private, max-age=31536000, immutable"}


@router.post("", status_code=201, openapi_extra=_BODY)
async def submit_graph(
    request: Request,
    response: Response,
    context: Shared,
    caller: Submitter,
    dim: Annotated[list[str], Query(max_length=100)] = [],  # noqa: B006 - FastAPI copies it
) -> GraphView:
    """Store a graph: its canonical JSON (`Graph.to_json()`), an ONNX file (`application/onnx`) or a
    torch.export archive (`application/zip`). Equal graphs have one id.

    A graph holds structure, types, value domains and small constants. Weights that come with a
    file are dropped, and may be missing. `dim=NAME=SIZE` gives an extent that an ONNX file only
    names.
    """
    view = await run_sync(_store, context, _media_type(request), await request.body(), dim)
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


def _store(context: Context, media_type: str, body: bytes, dims: list[str]) -> GraphView:
    kind = MEDIA_TYPES.get(media_type)
    graph = graph_from_json(body if kind is None else convert(body, kind, dims))
    return GraphView(id=context.store.graphs.put(graph), nodes=len(graph.nodes))


def _media_type(request: Request) -> str:
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found != _JSON and found not in MEDIA_TYPES:
        accepted = ", ".join((_JSON, *MEDIA_TYPES))
        raise Problem(
            415,
            "unsupported-graph-format",
            f"{found or 'no content type'}: send graph JSON, an ONNX file or a .pt2 archive under "
            f"its media type ({accepted}), or capture the model on the client: "
            "gaf.capture(model, example_inputs).to_json()",
            headers={"Accept-Post": accepted},
        )
    return found
