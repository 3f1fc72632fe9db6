"""Server-sent events of a job, read from the database: any replica can serve any client.

id: 17
event: progress
data: {"sequence":17,"job":"…","kind":"progress","data":{"done":3},"created_us":…}
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator

from anyio.to_thread import run_sync

from db.store import Store
from kernel_gen.records import JobEvent
from service.problems import Problem

_KEEP_ALIVE_SECONDS = 15.0
_BATCH = 500


def first_sequence(last_event_id: str | None) -> int:
    """The number after which a stream begins; raises Problem 422."""
    if not last_event_id:
        return 0
    if re.fullmatch("[0-9]{1,18}", last_event_id) is None:  # what 64 bits of a database hold
        raise Problem(422, "invalid-event-id", f"Last-Event-ID {last_event_id!r}: not a number")
    return int(last_event_id)


async def event_stream(
    store: Store, job_id: str, after: int, poll_seconds: float
) -> AsyncIterator[bytes]:
    """Events of a job in order, until it has ended and all were sent."""
    spoke = time.monotonic()
    while True:
        # The state is read first: what was written before the end is then surely seen.
        ended = (await run_sync(store.jobs.get, job_id)).state.is_terminal
        events = await run_sync(store.events.after, job_id, after, _BATCH)
        if events:
            after = events[-1].sequence
            spoke = time.monotonic()
            yield b"".join(_encode(event) for event in events)
            continue
        if ended:
            return
        if time.monotonic() - spoke > _KEEP_ALIVE_SECONDS:
            spoke = time.monotonic()
            yield b": still here\n\n"
        await asyncio.sleep(poll_seconds)


def _encode(event: JobEvent) -> bytes:
    # The data is canonical JSON, which holds no line break.
    data = (
        f'{{"sequence":{event.sequence},"job":"{event.job_id}","kind":"{event.kind}",'
        f'"data":{event.data},"created_us":{event.created_us}}}'
    )
    return f"id: {event.sequence}\nevent: {event.kind}\ndata: {data}\n\n".encode()
