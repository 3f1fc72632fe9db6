"""The job driver: `python -P -m tuner.driver [--db URL] [--device NAME] [--worker |
--no-worker]`.

Claims jobs from the store one after another and runs them on a device. With `--worker` (default)
it starts a Ray of its own on this machine; with `--no-worker` it joins the cluster at `--address`
or RAY_ADDRESS and uses the device that a `gaf worker` there offers.

A database that is away is waited for; a job goes on when it is back, or from its stored trials.
SIGTERM and SIGINT give the current job back to the queue between two batches and end the driver
with status 0; a second one ends it at once. After `kill -9` the job's lease expires and another
driver goes on from the trials that were stored. Status 3: no device, compiler or Ray.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from db.leases import Lease
from db.store import Store
from kernel_gen.collector import collect_seldom
from kernel_gen.errors import InvalidInput, Unavailable
from tuner.devices.device import Device
from tuner.devices.ray_runtime import ray_runtime
from tuner.job_runner import JobRunner
from tuner.patience import Patience, StoreAway

_POLL_SECONDS = 0.5
_ANNOUNCE_SECONDS = 5.0
_PATIENCE_SECONDS = 300.0  # a database's restart; then others may have the job
_EXIT_USAGE, _EXIT_UNAVAILABLE = 2, 3
log = logging.getLogger(__name__)


class Driver:
    """Runs the jobs of one device until it is told to stop."""

    def __init__(self, store: Store, stop: threading.Event, device_name: str = "cpu") -> None:
        self._store, self._stop, self._device_name = store, stop, device_name
        self._owner = f"{socket.gethostname()}:{os.getpid()}"
        self._job_id: str | None = None

    def run(self) -> None:
        """Claim and run jobs until `stop` is set; raises Unavailable if the device is lost."""
        from tuner.devices.ray_device import RayDevice

        device = RayDevice(self._device_name)
        announcer = threading.Thread(target=self._announce, args=(device,), daemon=True)
        announcer.start()
        try:
            while not self._stop.is_set():
                lease = self._claim()
                if lease is None:
                    self._stop.wait(_POLL_SECONDS)
                    continue
                self._now_runs(device, lease.job_id)
                self._work(lease, device)
                self._now_runs(device, None)
        finally:
            self._stop.set()
            announcer.join()
            self._leave()
            device.close()

    def _claim(self) -> Lease | None:
        """The next job; None where there is none, or no database to ask."""
        try:
            return self._store.queue.claim(self._owner, [self._device_name])
        except Unavailable as error:
            log.warning("no job can be claimed: %s", error)
            return None

    def _work(self, lease: Lease, device: Device) -> None:
        patience = Patience(_PATIENCE_SECONDS, hurry=self._stop.is_set)
        stopped = self._stop.is_set
        try:
            runner = JobRunner(self._store, lease, device, shutdown=stopped, patience=patience)
            log.info("job %s: %s", lease.job_id, runner.run() or "given back")
        except StoreAway as error:
            log.warning("job %s waits for its lease to run out: %s", lease.job_id, error)

    def _leave(self) -> None:
        try:
            self._store.devices.remove(self._owner)
        except Unavailable as error:
            log.warning("this device will be listed until it is noticed as silent: %s", error)

    def _now_runs(self, device: Device, job_id: str | None) -> None:
        self._job_id = job_id
        self._say(device)

    def _announce(self, device: Device) -> None:
        """Keep this device in the list that the service shows."""
        self._say(device)
        while not self._stop.wait(_ANNOUNCE_SECONDS):
            self._say(device)

    def _say(self, device: Device) -> None:
        job = self._job_id
        state = "idle" if job is None else "busy"
        try:
            self._store.devices.heartbeat(
                self._owner, self._device_name, device.target, state, job_id=job
            )
        except Unavailable as error:
            log.warning("this device cannot be announced: %s", error)


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set `stop`; the second one has its usual effect."""

    def handle(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    kept = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit status."""
    collect_seldom()
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    address = options.address or os.environ.get("RAY_ADDRESS")
    if not options.worker and address is None:
        print("--no-worker needs --address or RAY_ADDRESS", file=sys.stderr)
        return _EXIT_USAGE
    stop = threading.Event()
    try:
        with (
            stop_on_signals(stop),
            Store(options.db) as store,
            ray_runtime(None if options.worker else address),
        ):
            Driver(store, stop, options.device).run()
    except (Unavailable, InvalidInput) as error:
        print(f"driver: {error}", file=sys.stderr)
        return _EXIT_UNAVAILABLE if isinstance(error, Unavailable) else _EXIT_USAGE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tuner.driver", description="Runs tuning jobs.")
    place = os.environ.get("GAF_DB")
    parser.add_argument(
        "--db", default=place, required=not place, help="SQLAlchemy URL (default: GAF_DB)"
    )
    parser.add_argument("--device", default="cpu", help="cpu, ascend-sim:910b3, …")
    parser.add_argument("--worker", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--address", help="Ray cluster to join with --no-worker")
    return parser


if __name__ == "__main__":
    sys.exit(main())
