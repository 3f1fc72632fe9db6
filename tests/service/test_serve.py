"""`serve`: API and driver start and stop together, whatever ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from db.queue import owner_of
from db.store import Store
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.records import JobState
from service.main import serve
from service.settings import Settings
from service.supervisor import driver_command
from tests.fixtures import samples

SERVER = """
import sys
from service.main import serve
from service.settings import Settings
settings = Settings(db=sys.argv[1], port=0)
serve(settings, command=sys.argv[2:], on_ready=lambda url: print(url, flush=True))
print("stopped", flush=True)
"""
DRIVER = """
import os, signal, sys, time
def stop(number, frame):
    open(sys.argv[1] + ".stopped", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(120)
"""


class Server:
    """A served store in a process of its own, with a stand-in for the driver."""

    def __init__(self, db: str, folder: Path) -> None:
        self.pids_file = folder / "driver"
        command = [sys.executable, "-c", DRIVER, str(self.pids_file)]
        self.errors = folder / "errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVER, db, *command],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def driver_pids(self, count: int) -> list[int]:
        def found() -> list[int]:
            text = self.pids_file.read_text() if self.pids_file.exists() else ""
            return [int(line) for line in text.splitlines()]

        wait_for(lambda: len(found()) >= count)
        return found()


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """A zombie has ended; its parent has yet to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[Server]:
    started = Server(sqlite_url, tmp_path)
    yield started
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.process.pid, signal.SIGKILL)
    started.process.wait()
    assert started.process.stdout is not None
    started.process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything_in_order(server: Server, number: signal.Signals) -> None:
    (driver,) = server.driver_pids(1)
    assert httpx2.get(f"{server.url}/v1/health/ready").status_code == 200
    for _ in range(2):  # the second one of somebody in a hurry
        server.process.send_signal(number)
        time.sleep(0.01)
    out, _ = server.process.communicate(timeout=60)
    assert (out.strip(), server.errors.read_text()) == ("stopped", "")
    assert server.process.returncode == 0
    assert not is_alive(driver)
    assert Path(f"{server.pids_file}.stopped").exists()


def test_an_open_stream_of_events_does_not_hold_up_the_end(server: Server, sqlite_url: str) -> None:
    with Store(sqlite_url) as store:
        program = samples.graph()
        store.graphs.put(program)
        job = store.jobs.create(samples.request(program), samples.key(program)).job
    with httpx2.stream("GET", f"{server.url}/v1/jobs/{job.id}/events") as stream:
        next(stream.iter_lines())
        server.process.terminate()
        server.process.wait(timeout=60)
    assert server.process.returncode == 0


def test_a_driver_that_dies_is_started_again_and_its_job_waits(
    server: Server, sqlite_url: str
) -> None:
    (first,) = server.driver_pids(1)
    with Store(sqlite_url) as store:
        program = samples.graph()
        store.graphs.put(program)
        store.jobs.create(samples.request(program), samples.key(program))
        lease = store.queue.claim(owner_of(first))
        assert lease is not None
        os.kill(first, signal.SIGKILL)
        assert server.driver_pids(2)[1] != first
        assert store.jobs.get(lease.job_id).state is JobState.QUEUED  # not after 30 s
    assert httpx2.get(f"{server.url}/v1/health/live").status_code == 200


def test_a_killed_server_takes_its_driver_along(server: Server) -> None:
    (driver,) = server.driver_pids(1)
    server.process.kill()
    server.process.wait()
    wait_for(lambda: not is_alive(driver))
    assert Path(f"{server.pids_file}.stopped").exists()


def test_without_keys_only_this_machine_is_served(sqlite_url: str) -> None:
    with pytest.raises(InvalidInput, match="no API key"):
        serve(Settings(db=sqlite_url, host="0.0.0.0", port=0), driver=False)


def test_a_taken_port_is_named(sqlite_url: str) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"port {port}"):
            serve(Settings(db=sqlite_url, port=port), driver=False)


def test_each_device_has_a_driver_of_its_own_kind() -> None:
    command = driver_command("ascend-sim:910b3", worker=False)
    assert command[-3:] == ["--no-worker", "--device", "ascend-sim:910b3"]
    assert driver_command(worker=True)[-2:] == ["--device", "cpu"]
