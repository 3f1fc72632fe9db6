"""`gaf calibrate`: this machine's rates, for ranking candidates before they are built."""

from __future__ import annotations

import dataclasses
import os

import typer

from graph_autofusion.cli.database import need_server
from graph_autofusion.cli.output import JsonFlag, print_json, print_line, print_rows
from graph_autofusion.progress import waiting

_BUSY = 0.5  # load per core above which other work is felt


def calibrate(as_json: JsonFlag = False) -> None:
    """Measure this machine's clock and bandwidths; later searches here rank candidates by them."""
    need_server()
    from cost_models.calibrate import MEASURED, keep, machine_of
    from cost_models.calibrate import calibrate as run
    from kernel_gen.runtime.host import host_target

    target = host_target()
    if os.getloadavg()[0] > _BUSY * target.cores:
        typer.echo("gaf: this machine is busy: its rates will look lower than they are", err=True)
    before = dataclasses.asdict(machine_of(target))
    with waiting("measuring this machine"):
        machine = run(target)
    path, now = keep(target, machine), dataclasses.asdict(machine)
    if as_json:
        rates = {name: now[name] for name in MEASURED}
        print_json({"target": target.key, "file": str(path), "rates": rates})
        return
    print_line(target.key)
    rows = [(name, f"{before[name]:.1f}", f"{now[name]:.1f}") for name in MEASURED]
    print_rows(rows, ("rate", "before", "now"), title="rates", as_json=False)
    print_line(f"kept in {path}")
