"""`gaf tune`: search on this machine, without a service."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from graph_autofusion.cli import subject
from graph_autofusion.cli.output import JsonFlag
from graph_autofusion.export import print_graph
from graph_autofusion.options import parse_options
from graph_autofusion.report import report_of
from graph_autofusion.resolver import Resolver
from kernel_gen.errors import Unavailable
from kernel_gen.records import Budget

Seconds = Annotated[float, typer.Option("--seconds", help="budget of the search")]
Trials = Annotated[int | None, typer.Option("--trials", help="most trials to run")]
Rules = Annotated[str | None, typer.Option("--rules", help="YAML file of fusion rules")]
_NUMERICS, DEVICES = ["fast", "strict"], ["cpu", "ascend-sim:910b3", "ascend:0"]  # for completion
Numerics = Annotated[
    str, typer.Option("--numerics", help="fast or strict", autocompletion=lambda: _NUMERICS)
]
Dims = Annotated[
    list[str] | None, typer.Option("--dim", help="NAME=SIZE of a dimension that a file only names")
]
_DEVICE_HELP = "cpu, ascend-sim:910b3 (910b1, 910b4; 310p and 950 are estimates), or ascend:0"
Device = Annotated[str, typer.Option("--device", help=_DEVICE_HELP, autocompletion=lambda: DEVICES)]
What = Annotated[str, typer.Argument(metavar="PROGRAM", help=subject.HELP)]


def tune(
    what: What,
    seconds: Seconds = 60.0,
    trials: Trials = None,
    rules: Rules = None,
    numerics: Numerics = "fast",
    dim: Dims = None,
    device: Device = "cpu",
    store: Annotated[
        str | None, typer.Option("--store", envvar="GAF_STORE", help="SQLAlchemy URL")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Find the fastest plan for a program on a device, and keep it in the bundle cache."""
    options = parse_options(
        device=device,
        budget=Budget(seconds, trials),
        store=store,
        on_miss="tune",
        rules=rules,
        numerics=numerics,
        strict=True,
        environ={},
    )
    graph = subject.load_subject(what, dim or ()).graph
    resolution = Resolver(options).resolve(graph, lambda plan: False)
    if resolution.plan is None:
        raise Unavailable(resolution.reason)
    cache, tuned_now = resolution.cache, resolution.cache == "tuned"
    report = report_of(resolution.plan, cache, tuned_now=tuned_now, note=resolution.reason)
    if as_json:
        print(json.dumps(json.loads(report.to_json()), indent=1))
    else:
        print_graph(resolution.plan)
