"""Commands of a platform team: serve, driver, worker, db."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from graph_autofusion.cli.database import DbOption, need_server
from graph_autofusion.cli.output import JsonFlag, print_line, print_result
from graph_autofusion.cli.tune import DEVICES
from graph_autofusion.paths import default_store
from graph_autofusion.progress import waiting

db_app = typer.Typer(help="Look after the database.", no_args_is_help=True)


def serve(
    host: Annotated[str, typer.Option("--host", help="address to listen on")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 picks a free one")
    ] = 8400,
    db: DbOption = "",
    worker: Annotated[bool, typer.Option(help="embed a worker on this machine")] = True,
    driver: Annotated[bool, typer.Option(help="run a job driver")] = True,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            help="whose jobs are run; may be repeated [cpu]",
            autocompletion=lambda: DEVICES,
        ),
    ] = None,
) -> None:
    """Serve REST and dashboard, with a job driver and a worker of this machine."""
    need_server()
    from kernel_gen.runtime.device_names import checked_device
    from service.main import serve as run
    from service.settings import read_settings

    devices = [checked_device(name) for name in device or ("cpu",)]
    settings = read_settings(db=db or default_store(), host=host, port=port)
    with ExitStack() as starting:
        starting.enter_context(waiting("starting"))

        def on_ready(url: str) -> None:
            starting.close()
            print_line(f"listening on {url}")

        run(settings, worker=worker, driver=driver, devices=devices, on_ready=on_ready)


def driver(
    db: DbOption = "",
    worker: Annotated[bool, typer.Option(help="start a worker of its own")] = True,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            help="whose jobs it runs: cpu, or ascend-sim:910b3",
            autocompletion=lambda: DEVICES,
        ),
    ] = "cpu",
    address: Annotated[
        str | None, typer.Option(envvar="RAY_ADDRESS", help="Ray cluster, with --no-worker")
    ] = None,
) -> None:
    """Run tuning jobs of a store until stopped."""
    need_server()
    from tuner.driver import main

    print_line(f"running jobs of {device} until stopped")
    arguments = ["--db", db or default_store(), "--worker" if worker else "--no-worker"]
    arguments += ["--device", device]
    raise typer.Exit(main([*arguments, *(["--address", address] if address else [])]))


def worker(
    address: Annotated[
        str | None, typer.Option(envvar="RAY_ADDRESS", help="head of the cluster, host:port")
    ] = None,
    head: Annotated[bool, typer.Option("--head", help="be the head of a new cluster")] = False,
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="port of a new cluster")
    ] = 6379,
) -> None:
    """Offer this machine's CPU to a Ray cluster until stopped."""
    need_server()
    if head == (address is not None):
        raise typer.BadParameter("give either --head or --address host:port")
    from tuner.devices.ray_runtime import RESOURCES, checked_address, prepare_environment

    if address is not None:
        checked_address(address)
    prepare_environment()
    command = [sys.executable, "-P", "-m", "ray.scripts.scripts", "start", "--block"]
    command += ["--head", f"--port={port}"] if head else [f"--address={address}"]
    command += ["--resources", json.dumps(RESOURCES), "--disable-usage-stats"]
    os.execv(sys.executable, command)


@db_app.command("upgrade")
def upgrade(db: DbOption = "", as_json: JsonFlag = False) -> None:
    """Bring the database to this version's schema; SQLite files are backed up first."""
    need_server()
    from db.migrate import upgrade as run

    with waiting("upgrading the database"):
        revision = run(db or default_store())
    print_result({"revision": revision}, f"schema revision {revision}", as_json)
