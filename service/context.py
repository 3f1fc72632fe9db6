"""What the routes of one app share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from db.schema import Role
from db.store import Store
from db.tenants import Principal
from service.auth import Authenticator
from service.bundles import Bundler
from service.metrics import Metrics
from service.pictures import Pictures
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    """One per app, in `app.state.context`."""

    settings: Settings
    store: Store
    authenticator: Authenticator
    bundler: Bundler
    metrics: Metrics
    pictures: Pictures


def context_of(request: Request) -> Context:
    return cast(Context, request.app.state.context)


async def _reader(request: Request) -> Principal:
    return await context_of(request).authenticator.require(request, Role.READ)


async def _submitter(request: Request) -> Principal:
    return await context_of(request).authenticator.require(request, Role.SUBMIT)


async def _publisher(request: Request) -> Principal:
    return await context_of(request).authenticator.require(request, Role.PUBLISH)


Shared = Annotated[Context, Depends(context_of)]
Reader = Annotated[Principal, Depends(_reader)]
Submitter = Annotated[Principal, Depends(_submitter)]
Publisher = Annotated[Principal, Depends(_publisher)]
