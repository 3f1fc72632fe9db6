"""The OpenAPI document: committed, current, and true of every path."""

from __future__ import annotations

import json
from pathlib import Path

from service.openapi import openapi_text

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_the_committed_document_is_current() -> None:
    assert COMMITTED.read_text() == openapi_text(), "run `make openapi`"


def test_every_operation_is_described_and_answers_problems() -> None:
    paths = json.loads(COMMITTED.read_text())["paths"]
    assert len(paths) >= 20
    for path, operations in paths.items():
        assert path.startswith("/v1/") or path == "/metrics"
        for operation in operations.values():
            assert operation["description"], path
            assert "default" in operation["responses"], path
