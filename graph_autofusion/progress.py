"""The progress bar of a search, on a terminal's standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from kernel_gen.records import Budget

OnEvent = Callable[[dict[str, Any]], None]


@contextmanager
def tuning_progress(budget: Budget) -> Iterator[OnEvent]:
    """A bar over the budget's seconds; where standard error is no terminal, nothing is drawn."""
    if not sys.stderr.isatty():
        yield lambda event: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("tuning", total=max(budget.seconds, 1.0))

        def on_event(event: dict[str, Any]) -> None:
            if event.get("kind") == "progress":
                bar.update(task, description=describe_progress(event))
            elif event.get("kind") == "state":  # a service's job may wait for a driver
                bar.update(task, description=str(event.get("state")))
            elapsed = bar.tasks[0].elapsed or 0.0
            bar.update(task, completed=min(elapsed, budget.seconds))

        yield on_event


@contextmanager
def waiting(what: str, after_seconds: float = 0.0) -> Iterator[None]:
    """A spinner on a terminal's standard error for work whose end is not known, once the work has
    taken `after_seconds`."""
    if not sys.stderr.isatty():
        yield
        return
    spinner = ExitStack()
    timer = threading.Timer(after_seconds, lambda: spinner.enter_context(_spinning(what)))
    timer.daemon = True
    with spinner:
        if after_seconds:
            timer.start()
        else:
            spinner.enter_context(_spinning(what))
        try:
            yield
        finally:
            timer.cancel()
            if timer.ident is not None:
                timer.join()


def _spinning(what: str) -> AbstractContextManager[object]:
    from rich.console import Console

    return Console(stderr=True).status(what)


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal's standard error for work in countable pieces, told (done, total)."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def describe_progress(event: dict[str, Any]) -> str:
    """One line for a progress event: `tune-groups 12/40, best 81.2 µs`."""
    text = str(event.get("phase", "tuning"))
    if event.get("total"):
        text += f" {event.get('done', 0)}/{event['total']}"
    if event.get("best_us"):
        unit = "simulated µs" if event.get("simulated") else "µs"
        text += f", best {event['best_us']:.1f} {unit}"
    return text
