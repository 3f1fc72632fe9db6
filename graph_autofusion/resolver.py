"""From a captured graph to a plan: bundle cache, then service, then what `on_miss` says."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Protocol

from graph_autofusion.client import Client
from graph_autofusion.local_tuner import tune_locally
from graph_autofusion.options import OnMiss, Options
from graph_autofusion.paths import bundle_cache_root
from graph_autofusion.progress import OnEvent, tuning_progress
from kernel_gen.errors import GafError, InvalidInput, Unavailable
from kernel_gen.ir.graph import Graph
from kernel_gen.records import JobRequest
from kernel_gen.runtime.cache import BundleCache
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import PlanKey, plan_key
from kernel_gen.runtime.plan import Plan

log = logging.getLogger("graph_autofusion")

_RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Resolution:
    """A plan and where it came from ("hit", "compatible", "tuned"), or the reason for none.

    Without a plan `cache` is "pending" (a service works on it) or "fallback".
    """

    plan: Plan | None
    cache: str
    reason: str = ""


class PlanSource(Protocol):
    """Where plans come from; `Resolver` is the usual one."""

    def lookup(self, graph: Graph) -> Resolution | None: ...

    def resolve(self, graph: Graph) -> Resolution: ...


def job_request(graph: Graph, options: Options) -> JobRequest:
    """What is asked of a tuner."""
    return JobRequest(
        graph_digest=graph.digest,
        device=options.device,
        budget=options.budget,
        numerics=options.numerics,
        training=options.training,
        rules=options.rules,
    )


class Resolver:
    """Finds plans for one set of options on this machine."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._target = host_target()
        self._cache = BundleCache(bundle_cache_root(options.store))

    def key(self, graph: Graph) -> PlanKey:
        options = self._options
        return plan_key(
            graph,
            self._target,
            numerics=options.numerics,
            training=options.training,
            rules=options.rules,
        )

    def resolve(self, graph: Graph) -> Resolution:
        """The plan for `graph`, or why there is none. May search for the whole budget."""
        known = self.lookup(graph)
        if known is not None:
            return known
        match self._options.on_miss:
            case OnMiss.EAGER:
                return Resolution(None, "fallback", "no plan is known and on_miss is 'eager'")
            case OnMiss.ERROR:
                raise InvalidInput(f"no plan for {self.key(graph)} and on_miss is 'error'")
            case OnMiss.QUEUE:
                return self._queue(graph)
            case OnMiss.TUNE:
                return self._tune(graph)

    def lookup(self, graph: Graph) -> Resolution | None:
        """A known plan: from the bundle cache, else from the service."""
        key = self.key(graph)
        cached = self._cache.get(key)
        if cached is not None:
            return Resolution(cached, "hit")
        if self._options.service is None:
            return None
        try:
            return self._fetch(key)
        except GafError as error:
            log.warning("the service gave no plan: %s", error)
            return None

    def _client(self) -> Client:
        service = self._options.service
        if service is None:
            raise InvalidInput("no service is set: pass service= or set GAF_SERVICE")
        return Client(service)

    def _fetch(self, key: PlanKey) -> Resolution | None:
        with self._client() as client:
            plan = client.lookup(key)
        if plan is None:
            return None
        self._keep(plan)
        return Resolution(plan, "hit" if plan.key == key else "compatible")

    def _queue(self, graph: Graph) -> Resolution:
        if self._options.service is None:
            raise InvalidInput("on_miss='queue' needs a service: pass service= or GAF_SERVICE")
        try:
            with self._client() as client:
                job = client.submit_graph(graph, job_request(graph, self._options))
        except GafError as error:
            return Resolution(None, "fallback", f"the service did not take the job: {error}")
        return Resolution(None, "pending", f"job {job.id} is {job.state}")

    def _tune(self, graph: Graph) -> Resolution:
        with tuning_progress(self._options.budget) as on_event:
            if self._options.service is None:
                request = job_request(graph, self._options)
                tune_locally(graph, request, self._options.store, on_event)
                plan = self._cache.get(self.key(graph))
            else:
                plan = self._tune_remotely(graph, on_event)
        if plan is None:
            raise Unavailable("the search ended without a plan for this machine")
        return Resolution(plan, "tuned")

    def _tune_remotely(self, graph: Graph, on_event: OnEvent) -> Plan | None:
        with self._client() as client:
            job = client.submit_graph(graph, job_request(graph, self._options))
            for event in job.events():
                on_event(event)
            plan = job.wait()
        self._keep(plan)
        return plan

    def _keep(self, plan: Plan) -> None:
        """Into the bundle cache, for the next process; a cache that cannot be written is no loss
        to this one."""
        try:
            self._cache.put(plan)
        except Unavailable as error:
            log.warning("the plan is not cached: %s", error)


class Poller:
    """Asks for a pending plan at most every two seconds, at call boundaries."""

    def __init__(self, resolver: PlanSource, graph: Graph) -> None:
        self._resolver = resolver
        self._graph = graph
        self._next = time.monotonic() + _RETRY_SECONDS

    def poll(self) -> Resolution | None:
        """The resolution once there is one; None while pending or asked too soon."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + _RETRY_SECONDS
        return self._resolver.lookup(self._graph)
