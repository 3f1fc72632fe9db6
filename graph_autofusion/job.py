"""`Job`: a handle on a job of a tuning service."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from graph_autofusion.http import Http
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.records import JobState
from kernel_gen.runtime.plan import Plan

# A server that is restarted in the meantime is waited for.
_PATIENCE_SECONDS = 60.0
_FIRST_POLL_SECONDS = 0.05
_LONGEST_POLL_SECONDS = 1.0

Event = dict[str, Any]


class Plans(Protocol):
    """Where a job's plan is fetched; `Client` is the usual one."""

    def plan(self, plan_id: str) -> Plan:
        """The plan of that id; raises UntrustedBundle if its signer is not trusted here."""
        ...


class Job:
    """A job by its id. `details` is what the service last said of it (see `JobView` in the OpenAPI
    document)."""

    def __init__(self, plans: Plans, http: Http, details: Mapping[str, Any]) -> None:
        self._plans = plans
        self._http = http
        self.details = dict(details)

    def __repr__(self) -> str:
        return f"Job({self.id!r}, {self.details['state']})"

    @property
    def id(self) -> str:
        return str(self.details["id"])

    @property
    def key(self) -> str:
        """The key under which the plan will be found."""
        return str(self.details["key"])

    @property
    def state(self) -> JobState:
        """The state as of now; a job that has ended is not asked about again."""
        if not JobState(self.details["state"]).is_terminal:
            self.refresh()
        return JobState(self.details["state"])

    def refresh(self, patience: float = 3.0) -> None:
        """Ask the service for the current details."""
        self.details = self._http.read("GET", f"/v1/jobs/{self.id}", patience=patience).json()

    def cancel(self) -> None:
        """Ask the job to end; harmless if it has ended."""
        self.details = self._http.read("DELETE", f"/v1/jobs/{self.id}").json()

    def trials(self) -> Iterator[dict[str, Any]]:
        """What the job has tried so far, in order."""
        cursor: str | None = None
        while True:
            params = {"limit": 500} | ({"cursor": cursor} if cursor else {})
            page = self._http.read("GET", f"/v1/jobs/{self.id}/trials", params=params).json()
            yield from page["trials"]
            cursor = page["next"]
            if cursor is None:
                return

    def events(self) -> Iterator[Event]:
        """The job's history from its beginning, as it happens, until the job has ended.

        Each event has `sequence`, `kind`, `created_us` and the members that its kind has. A broken
        connection is taken up again where it broke; raises Unavailable if that fails for a minute.
        """
        last, deadline = 0, time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                for event in self._stream(last):
                    last, deadline = event["sequence"], time.monotonic() + _PATIENCE_SECONDS
                    yield event
                    if event["kind"] == "state" and JobState(event["state"]).is_terminal:
                        return
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
                continue
            self.refresh(_PATIENCE_SECONDS)
            if JobState(self.details["state"]).is_terminal:
                return

    def _stream(self, last: int) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
        with self._http.stream(f"/v1/jobs/{self.id}/events", headers) as answer:
            yield from parse_events(answer.iter_lines())

    def wait(self, timeout: float | None = None) -> Plan:
        """The plan, once the job has ended.

        A cancelled job that had found a plan gives it. Raises TimeoutError after `timeout` seconds,
        Unavailable if the job failed or the service stays away, UntrustedBundle if the plan's
        signer is not trusted here.
        """
        return self._plans.plan(self.wait_for_id(timeout))

    def wait_for_id(self, timeout: float | None = None) -> str:
        """As `wait`, but the plan's id."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_POLL_SECONDS
        while not JobState(self.details["state"]).is_terminal:
            if deadline is not None and time.monotonic() + pause > deadline:
                raise TimeoutError(f"job {self.id} is {self.details['state']} after {timeout} s")
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_POLL_SECONDS)
            self.refresh(_PATIENCE_SECONDS)
        return self._plan_id()

    def _plan_id(self) -> str:
        plan_id, error = self.details["plan"], self.details["error"]
        if plan_id is not None:
            return str(plan_id)
        if error is not None:
            raise Unavailable(f"job {self.id} failed: {error['message']} [{error['code']}]")
        raise Unavailable(f"job {self.id} is {self.details['state']} and left no plan")


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """Events of a text/event-stream whose data are the service's JSON objects."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield _event("\n".join(data))
            data = []


def _event(text: str) -> Event:
    try:
        found = json.loads(text)
        own = {name: found[name] for name in ("sequence", "kind", "created_us")}
        return {**found["data"], **own}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"the service sent an event that cannot be read: {error}") from None
