"""From a captured graph to a plan: bundle cache, then service, then what `on_miss` says."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from graph_autofusion.busy import other_work
from graph_autofusion.collecting import collecting_later
from graph_autofusion.local_tuner import tune_locally
from graph_autofusion.options import OnMiss, Options
from graph_autofusion.paths import bundle_cache_root
from graph_autofusion.progress import OnEvent, tuning_progress
from graph_autofusion.report import why_unused
from graph_autofusion.resolution import Accepts, Resolution
from kernel_gen.errors import GafError, InvalidInput, Unavailable
from kernel_gen.ir.graph import Graph
from kernel_gen.records import JobRequest, JobState
from kernel_gen.runtime.bundle_format import plan_of_files
from kernel_gen.runtime.cache import BundleCache, Hit
from kernel_gen.runtime.device_names import device_target
from kernel_gen.runtime.key import PlanKey, plan_key
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.trust import Trust

if TYPE_CHECKING:
    from graph_autofusion.client import Client

log = logging.getLogger("graph_autofusion")

_AWAY_SECONDS = 30.0  # so long a service that could not be reached is not asked again


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
        self._target = device_target(options.device)
        self._cache = BundleCache(bundle_cache_root(options.store))
        self._away_until = 0.0

    def key(self, graph: Graph) -> PlanKey:
        options = self._options
        return plan_key(
            graph,
            self._target,
            numerics=options.numerics,
            training=options.training,
            rules=options.rules,
        )

    def resolve(self, graph: Graph, accepts: Accepts) -> Resolution:
        """The plan for `graph`, or why there is none. May search for the whole budget."""
        known = self._cached(graph, accepts)
        if self._options.service is not None and (known is None or _is_idle(known)):
            try:
                known = self._from_service(graph, accepts, known) or known
            except GafError as error:
                return known or self._without_service(error)
        return self._miss(graph) if known is None or self._is_outbid(known) else known

    def _is_outbid(self, known: Resolution) -> bool:
        """Whether the search that a miss starts would find what the plan's own had no time for."""
        searches = self._options.on_miss in (OnMiss.TUNE, OnMiss.QUEUE)
        return searches and known.plan is not None and known.plan.is_outbid(self._options.budget)

    def follow(self, job: str, graph: Graph, accepts: Accepts) -> Resolution | None:
        """What the service's job has found: its plan, or that there is none; None while it works.

        Raises Unavailable if the service cannot be asked.
        """
        with self._client() as client:
            known = client.job(job)
            if not JobState(known.details["state"]).is_terminal:
                return None
            plan_id = known.details["plan"]
            if plan_id is None:
                return Resolution(None, "fallback", f"job {job} is {known.state}, without a plan")
            plan = self._fetched(client, graph, plan_id, accepts)
        return plan or Resolution(None, "fallback", f"the plan of job {job} is no gain here")

    @collecting_later()
    def _cached(self, graph: Graph, accepts: Accepts) -> Resolution | None:
        found = self._cache.lookup(self.key(graph))
        if not isinstance(found, Hit):
            return None
        if found.exact:
            return Resolution(found.plan, "hit")
        return Resolution(found.plan, "compatible") if accepts(found.plan) else None

    def _from_service(
        self, graph: Graph, accepts: Accepts, known: Resolution | None
    ) -> Resolution | None:
        """The service's plan; None for a miss, or where it is no gain either. Raises a GafError
        where it cannot be asked."""
        if time.monotonic() < self._away_until:
            raise Unavailable(f"service {self._options.service} was away a moment ago")
        try:
            with self._client() as client:
                found = client.find(self.key(graph))
                is_wanted = known is None or found.improved or self._is_outbid(known)
                if found.plan_id is None or not is_wanted:
                    return None
                return self._fetched(client, graph, found.plan_id, accepts)
        except Unavailable:
            self._away_until = time.monotonic() + _AWAY_SECONDS
            raise

    def _without_service(self, error: GafError) -> Resolution:
        if self._options.on_miss is OnMiss.ERROR:
            raise error
        return Resolution(None, "fallback", f"the service gave no plan: {error}")

    def _fetched(
        self, client: Client, graph: Graph, plan_id: str, accepts: Accepts
    ) -> Resolution | None:
        plan = self._keep(client.bundle(plan_id))
        if plan.key == self.key(graph):
            return Resolution(plan, "hit")
        return Resolution(plan, "compatible") if accepts(plan) else None

    def _keep(self, files: dict[str, bytes]) -> Plan:
        """Into the bundle cache for the next process, under the signature it came with; a cache
        that cannot be written is no loss to this one."""
        try:
            return self._cache.put_files(files)
        except Unavailable as error:
            log.warning("the plan is not cached: %s", error)
            return plan_of_files(files, Trust.of_user())

    def _client(self) -> Client:
        service = self._options.service
        if service is None:
            raise InvalidInput("no service is set: pass service= or set GAF_SERVICE")
        from graph_autofusion.client import Client  # nothing that plans of this machine need

        return Client(service, os.environ.get("GAF_API_KEY"))

    def _miss(self, graph: Graph) -> Resolution:
        match self._options.on_miss:
            case OnMiss.EAGER:
                reason = "no plan is known and on_miss is 'eager'"
                return Resolution(None, "fallback", reason, is_asked_for=True)
            case OnMiss.ERROR:
                raise InvalidInput(f"no plan for {self.key(graph)} and on_miss is 'error'")
            case OnMiss.QUEUE:
                return self._queue(graph)
            case OnMiss.TUNE:
                return self._tune(graph)

    def _queue(self, graph: Graph) -> Resolution:
        if self._options.service is None:
            raise InvalidInput("on_miss='queue' needs a service: pass service= or GAF_SERVICE")
        try:
            with self._client() as client:
                job = client.submit_graph(graph, job_request(graph, self._options))
        except GafError as error:
            return Resolution(None, "fallback", f"the service did not take the job: {error}")
        return Resolution(None, "pending", f"job {job.id} works on it", job.id)

    def _tune(self, graph: Graph) -> Resolution:
        request = job_request(graph, self._options)
        busy = other_work() if self._options.service is None else ""
        with tuning_progress(self._options.budget) as show:
            if self._options.service is None:
                cache = self._tune_here(graph, request, show, busy)
                plan = self._cache.get(self.key(graph))
            else:
                cache, plan = "tuned", self._tune_remotely(graph, request, show)
        if plan is None:
            raise Unavailable("the search ended without a plan for this machine")
        return Resolution(plan, cache, busy)

    def _tune_here(self, graph: Graph, request: JobRequest, show: OnEvent, busy: str) -> str:
        """Searches; "hit" if the store had the plan already and only the bundle was missing."""
        cache = "hit"

        def on_event(event: dict[str, Any]) -> None:
            nonlocal cache
            if busy and cache == "hit":
                log.warning("%s: a search on an idle machine finds better plans", busy)
            cache = "tuned"
            show(event)

        tune_locally(graph, request, self._options.store, on_event)
        return cache

    def _tune_remotely(self, graph: Graph, request: JobRequest, on_event: OnEvent) -> Plan | None:
        with self._client() as client:
            job = client.submit_graph(graph, request)
            try:
                for event in job.events():
                    on_event(event)
            except KeyboardInterrupt:
                job.cancel()
                raise
            return self._keep(client.bundle(job.wait_for_id()))


def _is_idle(known: Resolution) -> bool:
    """Whether the model would run itself though there is this plan: another one may be a gain."""
    return known.plan is not None and bool(why_unused(known.plan))
