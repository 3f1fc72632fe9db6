"""`gaf serve`: the API in this process, the job driver in a child, both stopped together."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import uvicorn

from db.queue import owner_of
from db.store import Store
from kernel_gen.errors import InvalidInput, Unavailable
from service.app import create_app
from service.protocol import LimitedProtocol
from service.settings import Settings
from service.supervisor import Supervisor, driver_command

log = logging.getLogger(__name__)
_GRACE_SECONDS = 2  # streams of events stay open for ever: they are cut off then


def serve(
    settings: Settings,
    *,
    worker: bool = True,
    driver: bool = True,
    devices: Sequence[str] = ("cpu",),
    command: Sequence[str] | None = None,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until SIGINT or SIGTERM; must run in the main thread.

    `on_ready` is called with the server's URL when it listens (port 0 picks a free one). Each of
    the `devices` has a driver, with a local worker if `worker` is set; `command` replaces it.
    Raises InvalidInput if the address can be reached from other machines and no API key exists,
    Unavailable if the port is taken.
    """
    app = create_app(settings)
    listener = _listen(settings)
    try:
        if not settings.is_loopback and not app.state.context.store.tenants.list_keys():
            raise InvalidInput(
                f"{settings.host} can be reached from other machines and there is no API key: "
                "make one with `gaf db create-key`, or listen on 127.0.0.1"
            )
        store: Store = app.state.context.store
        supervisors = [
            Supervisor(
                command or driver_command(device, worker=worker),
                lambda pid: _lose(store, pid),
                {"GAF_DB": settings.db},
            )
            for device in (dict.fromkeys(devices) if driver else ())
        ]
        _run(app, listener, supervisors, lambda: on_ready(_url(settings, listener)))
    finally:
        listener.close()
        app.state.context.store.close()


def _run(
    app: object,
    listener: socket.socket,
    supervisors: Sequence[Supervisor],
    ready: Callable[[], None],
) -> None:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=LimitedProtocol,
        log_level="warning",
        access_log=False,  # a third of the lookups' speed
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    with _quiet_signals():
        for supervisor in supervisors:
            supervisor.start()
        try:
            _Server(config, ready).run(sockets=[listener])
        finally:
            for supervisor in supervisors:
                supervisor.ask_to_stop()
            for supervisor in supervisors:
                supervisor.stop()


def _lose(store: Store, pid: int) -> None:
    """Queue the jobs of a dead driver again now instead of when their leases run out."""
    try:
        store.queue.lose(owner_of(pid))
    except Unavailable as error:
        log.warning("jobs of the dead driver wait for their leases to run out: %s", error)


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second Ctrl-C changes nothing: cut short, uvicorn prints a trace and leaves streams."""
        if not self.should_exit:
            super().handle_exit(sig, frame)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}"
        ) from error


def _url(settings: Settings, listener: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listener.getsockname()[1]}"


@contextmanager
def _quiet_signals() -> Iterator[None]:
    """uvicorn stops at a signal and raises it again afterwards, which would end this process
    before the driver has stopped."""

    def ignore(number: int, frame: FrameType | None) -> None:
        log.debug("stopping after signal %d", number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, ignore) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
