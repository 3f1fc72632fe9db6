"""Devices, probes and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from service.context import Reader, Shared
from service.models import DeviceList, DeviceView, Health

router = APIRouter(tags=["operation"])


@router.get("/v1/devices")
def list_devices(context: Shared, caller: Reader) -> DeviceList:
    """Devices that workers have announced."""
    return DeviceList(devices=[DeviceView.of(device) for device in context.store.devices.list()])


@router.get("/v1/health/live")
async def live() -> Health:
    """Whether the process answers at all."""
    return Health(status="live")


@router.get("/v1/health/ready")
def ready(context: Shared) -> Health:
    """Whether the process can work: 503 if its database does not answer, or has been upgraded by
    a newer version."""
    context.store.require_current()
    context.store.jobs.counts()
    return Health(status="ready")


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {CONTENT_TYPE_LATEST: {}}}}
)
def metrics(context: Shared, caller: Reader) -> Response:
    """Counters and gauges for Prometheus."""
    return Response(context.metrics.text(context.store), media_type=CONTENT_TYPE_LATEST)
