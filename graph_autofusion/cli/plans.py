"""`gaf plans`, `gaf export`, `gaf import`: what a service has found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from graph_autofusion.cli.output import (
    DEFAULT_SERVICE,
    PLANS,
    SHOWN_ID,
    ApiKeyOption,
    JsonFlag,
    Limit,
    ServiceOption,
    asking,
    print_json,
    print_result,
    print_rows,
    whole_id,
)
from graph_autofusion.client import Client
from graph_autofusion.progress import waiting
from kernel_gen.runtime.boxes import show_us

PlanId = Annotated[str, typer.Argument(help="the plan's id, or as much of it as tables show")]
app = typer.Typer(help="List a service's plans, or revoke one.", invoke_without_command=True)
_COLUMNS = ("id", "status", "time", "speedup", "created")


@app.callback()
def list_(
    context: typer.Context,
    limit: Limit = 50,
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the newest plans of a service."""
    if context.invoked_subcommand is not None:
        return
    with asking(service, api_key) as client:
        found = client.plans(limit)
    if as_json:
        print_json(found)
        return
    print_rows([_row(plan) for plan in found], _COLUMNS, title="plans", as_json=False)


def _row(plan: Mapping[str, Any]) -> tuple[Any, ...]:
    speedup, created = plan.get("speedup"), datetime.fromtimestamp(plan["created_us"] / 1e6)
    shown = "no gain" if not plan["improved"] else None if speedup is None else f"{speedup:.2f}x"
    return (
        plan["id"][:SHOWN_ID],
        plan["status"],
        _time(plan),
        shown,
        f"{created:%Y-%m-%d %H:%M}",
    )


def _time(plan: Mapping[str, Any]) -> str:
    kind = "simulated " if plan["target"].startswith("ascend-sim-") else ""
    return show_us(plan["measured_us"], kind)


def _whole_id(client: Client, text: str) -> str:
    return whole_id(PLANS, text, lambda: [plan["id"] for plan in client.plans(500)])


@app.command("revoke")
def revoke(
    plan_id: PlanId,
    reason: Annotated[str, typer.Option("--reason", help="why; shown to those who ask for it")],
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take a plan out of service for good."""
    with asking(service, api_key) as client:
        plan_id = _whole_id(client, plan_id)
        client.revoke(plan_id, reason)
    print_result({"id": plan_id, "state": "revoked"}, f"plan {plan_id} is revoked", as_json)


def export(
    plan_id: PlanId,
    folder: Annotated[Path, typer.Argument(help="a folder that does not exist yet")],
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a plan's signed bundle to a folder; `gaf.load(folder, model)` runs it."""
    with Client(service, api_key) as client, waiting("fetching the bundle"):
        plan_id = _whole_id(client, plan_id)
        written = str(client.export(plan_id, folder))
    print_result({"id": plan_id, "folder": written}, written, as_json)


def import_(
    folder: Annotated[Path, typer.Argument(help="the folder of a bundle")],
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Publish a bundle on a service that trusts its signer."""
    with Client(service, api_key) as client, waiting("sending the bundle"):
        plan_id = client.import_(folder)
    print_result({"id": plan_id}, f"plan {plan_id}", as_json)
