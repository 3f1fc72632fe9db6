"""Devices that workers have announced, by heartbeat."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from db.engine import Database
from db.schema import devices
from kernel_gen.codec import from_json, to_json
from kernel_gen.ir.target import Target

SILENT_US = 30_000_000
_FORGOTTEN_US = 600_000_000  # a worker that was killed is shown as silent for ten minutes


@dataclass(frozen=True, slots=True)
class Device:
    """One device of one worker. `state` is idle, building, measuring or another word of the
    worker; `alive` is False after 30 s without a heartbeat."""

    id: str
    worker: str
    device: str
    target: Target
    state: str
    job_id: str | None
    detail: str | None
    started_us: int
    heartbeat_us: int
    alive: bool


class Devices:
    """The `devices` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def heartbeat(
        self,
        worker: str,
        device: str,
        target: Target,
        state: str,
        *,
        job_id: str | None = None,
        detail: str | None = None,
    ) -> None:
        """Announce a device, or say what it does now. Call it every 10 s or less."""
        with self._database.write() as connection:
            now = self._database.now_us(connection)
            row = {
                "id": f"{worker}/{device}",
                "worker": worker,
                "device": device,
                "target": to_json(target),
                "state": state,
                "job_id": job_id,
                "detail": detail,
                "heartbeat_us": now,
            }
            forgotten = devices.c.heartbeat_us < now - _FORGOTTEN_US
            connection.execute(sa.delete(devices).where(forgotten, devices.c.id != row["id"]))
            if not self._database.insert_ignore(connection, devices, row | {"started_us": now}):
                query = sa.update(devices).where(devices.c.id == row["id"])
                connection.execute(query.values(**row))

    def remove(self, worker: str) -> None:
        """Forget the devices of a worker that leaves."""
        with self._database.write() as connection:
            connection.execute(sa.delete(devices).where(devices.c.worker == worker))

    def list(self) -> list[Device]:
        """All known devices, by id."""
        with self._database.read() as connection:
            now = self._database.now_us(connection)
            rows = connection.execute(sa.select(devices).order_by(devices.c.id)).all()
        return [
            Device(
                id=row.id,
                worker=row.worker,
                device=row.device,
                target=from_json(Target, row.target),
                state=row.state,
                job_id=row.job_id,
                detail=row.detail,
                started_us=row.started_us,
                heartbeat_us=row.heartbeat_us,
                # A heartbeat from the future was sent before the clock was set back.
                alive=abs(now - row.heartbeat_us) < SILENT_US,
            )
            for row in rows
        ]
