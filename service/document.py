"""The OpenAPI document of an app, in which all errors are problems."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.problems import MEDIA_TYPE

_PROBLEM = {
    "description": "problem details (RFC 9457)",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemView"}}},
}
# FastAPI's own shape of errors, which this service never answers.
_FOREIGN = ("HTTPValidationError", "ValidationError")


def describe(app: FastAPI) -> dict[str, Any]:
    """The document of an app, in which every error of every operation is a problem."""
    document = get_openapi(
        title=app.title, version=app.version, summary=app.summary, routes=app.routes
    )
    for operations in document["paths"].values():
        for operation in operations.values():
            responses = operation["responses"]
            responses.pop("422", None)
            for status in [status for status in responses if status[0] == "4"]:
                responses[status] = _PROBLEM | {"description": responses[status]["description"]}
            responses["default"] = _PROBLEM
    for name in _FOREIGN:
        document["components"]["schemas"].pop(name, None)
    return document
