"""Opaque cursors: where the next page begins."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated

from fastapi import Query

from service.problems import Problem

Limit = Annotated[int, Query(ge=1, le=500, description="entries per page")]
Cursor = Annotated[str | None, Query(max_length=400, description="`next` of the page before")]


def encode_cursor(*parts: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def decode_cursor(text: str, *kinds: type) -> list[str | int]:
    """The parts that `encode_cursor` was given; raises Problem 422."""
    try:
        padded = text + "=" * (-len(text) % 4)
        parts = json.loads(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValueError):
        parts = None
    if (
        not isinstance(parts, list)
        or [type(part) for part in parts] != list(kinds)
        or any(isinstance(part, int) and abs(part) >= 2**63 for part in parts)
    ):
        raise Problem(422, "invalid-cursor", "cursor: not one that this server gave out")
    return parts
