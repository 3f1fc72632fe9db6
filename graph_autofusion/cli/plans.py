"""`gaf plans`, `gaf export`, `gaf import`: what a service has found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from graph_autofusion.cli.output import (
    DEFAULT_SERVICE,
    ApiKeyOption,
    JsonFlag,
    ServiceOption,
    asking,
    print_json,
    print_result,
    print_rows,
)
from graph_autofusion.client import Client
from graph_autofusion.progress import waiting

app = typer.Typer(help="List a service's plans, or revoke one.", invoke_without_command=True)
_COLUMNS = ("id", "status", "speedup", "created", "key")


@app.callback()
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500)] = 50,
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
    return (
        plan["id"],
        plan["status"],
        None if speedup is None else f"{speedup:.2f}x",
        f"{created:%Y-%m-%d %H:%M}",
        plan["key"],
    )


@app.command("revoke")
def revoke(
    plan_id: Annotated[str, typer.Argument(help="the plan's id")],
    reason: Annotated[str, typer.Option("--reason", help="why; shown to those who ask for it")],
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take a plan out of service for good."""
    with asking(service, api_key) as client:
        client.revoke(plan_id, reason)
    print_result({"id": plan_id, "state": "revoked"}, f"plan {plan_id} is revoked", as_json)


def export(
    plan_id: Annotated[str, typer.Argument(help="the plan's id")],
    folder: Annotated[Path, typer.Argument(help="a folder that does not exist yet")],
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a plan's signed bundle to a folder; `gaf.load(folder, model)` runs it."""
    with Client(service, api_key) as client, waiting("fetching the bundle"):
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
