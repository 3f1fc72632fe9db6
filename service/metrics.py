"""What Prometheus reads at /metrics. One registry per app, so that several live side by side."""

from __future__ import annotations

import time
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from db.store import Store
from kernel_gen.records import JobState


class Metrics:
    """Counters of this process, and gauges read from the store when asked."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.since_us = time.time_ns() // 1000
        self._responses = Counter(
            "gaf_http_responses", "HTTP answers by status", ["status"], registry=self.registry
        )
        self._lookups = Counter(
            "gaf_lookups", "plan lookups by result", ["result"], registry=self.registry
        )
        self._jobs = Gauge("gaf_jobs", "jobs by state", ["state"], registry=self.registry)
        self._devices = Gauge("gaf_devices_alive", "devices alive", registry=self.registry)

        # Finding a child by its labels costs more than counting: the few there are are kept.
        self._response = lru_cache(100)(lambda status: self._responses.labels(str(status)))
        self._lookup = lru_cache(100)(self._lookups.labels)

    def count_response(self, status: int) -> None:
        self._response(status).inc()

    def count_lookup(self, result: str) -> None:
        """`result` is how a lookup matched, or the reason of a miss."""
        self._lookup(result).inc()

    def lookups(self) -> dict[str, int]:
        """How many lookups had which result since `since_us`."""
        return {
            sample.labels["result"]: int(sample.value)
            for family in self._lookups.collect()
            for sample in family.samples
            if sample.name == "gaf_lookups_total"
        }

    def text(self, store: Store) -> bytes:
        """The exposition text, with gauges as of now."""
        counts = store.jobs.counts()
        for state in JobState:
            self._jobs.labels(state.value).set(counts.get(state.value, 0))
        self._devices.set(sum(device.alive for device in store.devices.list()))
        return generate_latest(self.registry)
