"""What commands that need the server's half of the package share: its check, and the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from graph_autofusion.paths import default_store
from graph_autofusion.progress import waiting
from kernel_gen.errors import Unavailable

if TYPE_CHECKING:
    from db.store import Store

DbOption = Annotated[str, typer.Option("--db", envvar="GAF_DB", help="SQLAlchemy URL of the store")]


def need_server() -> None:
    """Raises Unavailable in a deploy-only install."""
    if find_spec("fastapi") is None or find_spec("ray") is None:
        raise Unavailable("this is a deploy-only install: pip install 'graph-autofusion[server]'")


@contextmanager
def opened_store(db: str) -> Iterator[Store]:
    """The store of a command's `--db`, the user's own if it is empty; Unavailable without it."""
    need_server()
    from db.store import Store

    with waiting("opening the store"):
        opened = Store(db or default_store())
    with opened as store:
        yield store
