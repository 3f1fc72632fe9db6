"""`gaf trust`: whose bundles may run here."""

from __future__ import annotations

from typing import Annotated

import typer

from graph_autofusion.cli.output import JsonFlag, asking, print_line, print_result, print_rows
from kernel_gen.errors import InvalidInput

app = typer.Typer(help="Whose bundles may run here.", no_args_is_help=True)


@app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the trusted keys by name and fingerprint."""
    from kernel_gen.runtime.trust import Trust

    trusted = Trust.of_user().keys()
    rows = [(key.name, key.fingerprint) for key in trusted]
    print_rows(rows, ("name", "fingerprint"), title="trusted keys", as_json=as_json)


@app.command("add")
def add(
    url: Annotated[str, typer.Argument(help="URL of a service")],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Trust a service's key after showing its fingerprint."""
    from kernel_gen.runtime.trust import Trust, fingerprint

    with asking(url, None) as client:
        public_key = client.public_key()
    mark = fingerprint(public_key)
    if not as_json:
        print_line(f"{url} signs with {mark}")
    elif not yes:
        raise InvalidInput("--json cannot ask: compare the fingerprint first, then add --yes")
    if not yes and not typer.confirm("Run native code signed by this key?"):
        raise typer.Exit(1)
    Trust.of_user().add(url, public_key)
    print_result({"name": url, "fingerprint": mark}, "trusted", as_json)
