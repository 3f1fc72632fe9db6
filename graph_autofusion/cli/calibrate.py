"""`gaf calibrate`: this machine's rates, for ranking candidates before they are built."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from graph_autofusion.busy import other_work
from graph_autofusion.cli.database import need_server
from graph_autofusion.cli.output import JsonFlag, print_json, print_line, print_rows
from graph_autofusion.progress import waiting
from kernel_gen.errors import Unavailable

Force = Annotated[bool, typer.Option("--force", help="keep rates of a busy machine, too")]


def calibrate(force: Force = False, as_json: JsonFlag = False) -> None:
    """Measure this machine's clock and bandwidths; later searches here rank candidates by them."""
    need_server()
    from cost_models.calibrate import MEASURED, contradiction, keep, machine_of
    from cost_models.calibrate import calibrate as run
    from kernel_gen.runtime.host import host_target

    target = host_target()
    _doubt(other_work(), force)
    before = dataclasses.asdict(machine_of(target))
    with waiting("measuring this machine"):
        machine = run(target)
    _doubt(contradiction(target, machine), force)
    path, now = keep(target, machine), dataclasses.asdict(machine)
    if as_json:
        rates = {name: now[name] for name in MEASURED}
        print_json({"target": target.key, "file": str(path), "rates": rates})
        return
    print_line(target.key)
    rows = [(name, f"{before[name]:.1f}", f"{now[name]:.1f}") for name in MEASURED]
    print_rows(rows, ("rate", "before", "now"), title="rates", as_json=False)
    print_line(f"kept in {path}")


def _doubt(finding: str | None, force: bool) -> None:
    """Wrong rates would mislead all later searches: raises Unavailable for a finding, unless
    forced."""
    if not finding:
        return
    if not force:
        raise Unavailable(
            f"{finding}: no rates are kept; run it again when the machine is idle, or with --force"
        )
    typer.echo(f"gaf: {finding}: the rates may be lower than on an idle machine", err=True)
