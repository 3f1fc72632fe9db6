"""Assembles the commands and turns typed errors into messages and exit codes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

import graph_autofusion.cli.again as again
import graph_autofusion.cli.calibrate as calibrate
import graph_autofusion.cli.demo as demo
import graph_autofusion.cli.doctor as doctor
import graph_autofusion.cli.keys as keys
import graph_autofusion.cli.plans as plans
import graph_autofusion.cli.remote as remote
import graph_autofusion.cli.repro as repro
import graph_autofusion.cli.server as server
import graph_autofusion.cli.trust as trust
import graph_autofusion.cli.tune as tune
from graph_autofusion import __version__
from kernel_gen.collector import collect_seldom
from kernel_gen.errors import GafError, InvalidInput, Unavailable

app = typer.Typer(
    name="gaf",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"gaf {__version__}")
        raise typer.Exit


@app.callback()
def gaf(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="print the version and end"
        ),
    ] = False,
) -> None:
    """Search for the fastest way to fuse, tile and run a tensor program."""


app.command("demo")(demo.demo)
app.command("tune")(tune.tune)
app.command("submit")(remote.submit)
app.command("lookup")(remote.lookup)
app.command("jobs")(remote.jobs)
app.command("devices")(remote.devices)
app.add_typer(plans.app, name="plans")
app.command("export")(plans.export)
app.command("import")(plans.import_)
app.command("calibrate")(calibrate.calibrate)
app.command("verify")(again.verify)
app.command("replay")(again.replay)
app.command("repro")(repro.repro)
app.command("serve")(server.serve)
app.command("driver")(server.driver)
app.command("worker")(server.worker)
server.db_app.command("create-key")(keys.create_key)
server.db_app.command("keys")(keys.keys)
server.db_app.command("revoke-key")(keys.revoke_key)
server.db_app.command("queue-limit")(keys.queue_limit)
app.add_typer(server.db_app, name="db")
app.add_typer(trust.app, name="trust")
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Runs the command line of this process, and ends it with the exit code."""
    collect_seldom()
    try:
        with _exit_on_sigterm():
            app(standalone_mode=True)
    except _Terminated as ended:
        print("gaf: ended by SIGTERM", file=sys.stderr)
        sys.exit(ended.code)
    except InvalidInput as error:
        _fail(error, 2)
    except Unavailable as error:
        _fail(error, 3)
    except GafError as error:
        _fail(error, 1)


class _Terminated(SystemExit):
    """SIGTERM came; what runs is left in order."""


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """SIGTERM raises in this block, unless a command has a handler of its own."""

    def handle(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends what hangs
        raise _Terminated(128 + number)

    kept = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, kept)


def _fail(error: GafError, code: int) -> None:
    print(f"gaf: {error}", file=sys.stderr)
    sys.exit(code)
