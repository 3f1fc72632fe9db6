"""`gaf repro`: is a kernel of this program wrong here? If so, the smallest case of it in files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graph_autofusion.cli import subject
from graph_autofusion.cli.database import need_server
from graph_autofusion.cli.output import JsonFlag, print_json, print_line
from graph_autofusion.cli.tune import Dims, Numerics, What
from graph_autofusion.progress import counting
from kernel_gen.errors import InvalidInput

if TYPE_CHECKING:
    from tuner.devices.device import LocalDevice
    from tuner.repro import Finding, Searched


def repro(
    what: What,
    output: Annotated[Path, typer.Option("--output", help="a folder for the case")] = Path("repro"),
    points: Annotated[int, typer.Option("--points", min=0, help="random ones a template")] = 4,
    seed: Annotated[int, typer.Option("--seed", help="of the random points")] = 0,
    numerics: Numerics = "fast",
    dim: Dims = None,
    as_json: JsonFlag = False,
) -> None:
    """Check all kernels of a program, and write the smallest wrong case; exit code 1 if any."""
    need_server()
    from kernel_gen.codegen.cpu.registry import templates
    from tuner.repro import Repro

    if output.exists():
        raise InvalidInput(f"{output} exists already: name another folder with --output")
    graph = subject.load_subject(what, dim or ()).graph
    with _device() as device, counting("checking kernels") as on_nest:
        kinds = templates(device.target)
        found = Repro(
            device, kinds, numerics=numerics, points=points, seed=seed, on_nest=on_nest
        ).search(graph)
    if found.finding is not None:
        _write(found.finding, output)
    _print(found, output, as_json)
    if found.finding is not None:
        raise typer.Exit(1)


@contextmanager
def _device() -> Iterator[LocalDevice]:
    from tuner.devices.device import LocalDevice

    device = LocalDevice()
    try:
        yield device
    finally:
        device.close()


def _write(finding: Finding, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "graph.json").write_text(finding.graph.to_json(), encoding="utf-8")
    for name, text in finding.task.source.files:
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "failure.json").write_text(json.dumps(_described(finding), indent=1))


def _described(finding: Finding) -> dict[str, object]:
    failure = finding.failure
    return {
        "ops": [node.op for node in finding.graph.nodes],
        "template": finding.task.template,
        "point": dict(finding.task.point),
        "stage": failure.stage.value,
        "code": failure.code,
        "message": failure.message,
    }


def _print(found: Searched, folder: Path, as_json: bool) -> None:
    finding = found.finding
    if as_json:
        described = None if finding is None else _described(finding) | {"folder": str(folder)}
        print_json({"kernels": found.kernels, "finding": described})
    elif finding is None:
        print_line(f"{found.kernels} kernels checked, all right")
    else:
        ops = " + ".join(node.op for node in finding.graph.nodes)
        print_line(f"wrong: {ops} [{finding.task.template}]: {finding.failure.message}")
        print_line(f"the case is in {folder}; check it again: gaf repro {folder}/graph.json")
