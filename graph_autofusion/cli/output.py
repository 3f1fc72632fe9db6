"""Tables for people, JSON for programs: standard output holds one or the other, never both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from graph_autofusion.client import Client
from graph_autofusion.progress import waiting
from kernel_gen.errors import InvalidInput

JsonFlag = Annotated[bool, typer.Option("--json", help="print JSON instead of tables")]
ServiceOption = Annotated[
    str, typer.Option("--service", envvar="GAF_SERVICE", help="URL of the service")
]
ApiKeyOption = Annotated[
    str | None, typer.Option("--api-key", envvar="GAF_API_KEY", help="key for the service")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=500, help="at most so many rows")]
DEFAULT_SERVICE = "http://127.0.0.1:8400"
SHOWN_ID = 12  # characters of a plan's id in tables; commands take as many in its place
_ANY_WIDTH = 100_000


class Ids(NamedTuple):
    """What commands name by an id: its plural, and how long the id is where it is shown short and
    whole."""

    plural: str
    shown: int
    whole: int


PLANS = Ids("plans", SHOWN_ID, 64)
JOBS = Ids("jobs", 8, 36)
JOB_ID_HELP = f"its id, or the first {JOBS.shown} characters or more"


@contextmanager
def asking(service: str, api_key: str | None) -> Iterator[Client]:
    """A client of the service, and a sign on the terminal that its answer is awaited."""
    with Client(service, api_key) as client, waiting(f"asking {service}"):
        yield client


def whole_id(kind: Ids, text: str, known: Callable[[], Iterable[str]]) -> str:
    """The one of `known` that begins with `text`; `text` itself if there is none.

    `text` may also be what the dashboard shows of a long id: its begin and end around an ellipsis.
    Raises InvalidInput where several ids fit.
    """
    begin, _, end = text.partition("…")
    if not kind.shown <= len(begin) < kind.whole:
        return text
    found = [one for one in known() if one.startswith(begin) and one.endswith(end)]
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} {kind.plural} have ids like {text}: give more of it")
    return found[0] if found else text


def is_id(text: str) -> bool:
    """Whether `text` may be a plan's id, or as much of it as lists show."""
    return len(text) >= SHOWN_ID and set(text.lower()) <= set("0123456789abcdef-")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=1, default=str))


def print_rows(
    rows: Iterable[Sequence[Any]], columns: Sequence[str], *, title: str, as_json: bool
) -> None:
    """`rows` as a table with `columns`, or as a JSON list of objects."""
    kept = [tuple(row) for row in rows]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in kept])
        return
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in kept:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:  # whoever reads a pipe wants whole cells
        free = console.options.update(max_width=_ANY_WIDTH)
        console.width = max(console.width, console.measure(table, options=free).maximum)
    console.print(table)


def print_line(text: str) -> None:
    """One line for people, without markup."""
    Console().print(Text(text), soft_wrap=True)


def print_result(value: Any, text: str, as_json: bool) -> None:
    """What a command did: one JSON document, or one line."""
    if as_json:
        print_json(value)
    else:
        print_line(text)
