"""The search over nests: batches to the device until the budget's share is used.

    solve the cover on what is known → nests in it → shares of a batch → build, check, time → again

Only nests that occur in a promising cover are tuned. A cover that looks good on predictions alone
is measured at once, which corrects the predictions and moves the next cover. Once all of the best
cover is measured, nests are hoped to take less than they are known to (`CostBook.hoped_us`), so
that a fusion which the model underrates is tried as well, and one that lost by its first guess is
tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_gen.codegen.template import Template
from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FusionGroup, FusionPlan
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.records import Failure, Stage, Trial
from kernel_gen.runtime.device_names import is_simulated
from tuner.archive import Archive
from tuner.child.messages import UNTRIED, KernelTask, TaskResult
from tuner.covers.problem import for_sharing
from tuner.covers.solver import Cover, CoverOption, Overheads, best_covers
from tuner.devices.device import Device
from tuner.meter import Meter
from tuner.nests.allocate import Share, allocate, has_untried
from tuner.nests.costs import CostBook
from tuner.nests.search import Proposal
from tuner.tasks import Tasks

_BATCH_SECONDS = 1.5
_BATCH = (6, 24)  # fewest and most candidates of a batch
_FIRST_TRIAL_SECONDS = 0.2  # guess before anything was measured
_UNFUSED_WEIGHT = 0.15  # of a nest that only the plan without fusion, or a hopeful one, needs
_RESOLVE_BATCHES = 4  # batches between two covers once there is nothing untried in the best one
_SOLVER_SECONDS, _SOLVER_SHARE = 2.0, 0.1

Progress = Callable[[int, int, float | None], None]


@dataclass(slots=True)
class _Pace:
    """Seconds per trial so far, to size batches and to know when the last one is due."""

    seconds: float = 0.0
    trials: int = 0

    @property
    def trial_seconds(self) -> float:
        return self.seconds / self.trials if self.trials else _FIRST_TRIAL_SECONDS

    def add(self, seconds: float, trials: int) -> None:
        self.seconds += seconds
        self.trials += trials


class GroupStage:
    """Tunes the nests of a program. `check_stop` raises to end the job between batches."""

    def __init__(
        self,
        tasks: Tasks,
        costs: CostBook,
        templates: Sequence[Template],
        device: Device,
        archive: Archive,
        meter: Meter,
        check_stop: Callable[[], None],
    ) -> None:
        self._tasks, self._costs, self._device = tasks, costs, device
        self._ops = Sharing(tasks.program).ops
        self._templates = {template.name: template for template in templates}
        self._archive, self._meter, self._check_stop = archive, meter, check_stop
        self._pace = _Pace()
        self._announced: set[str] = set()
        self._weights: dict[str, float] = {}
        self._batches_left = 0  # with the present weights
        self._cover_us: float | None = None
        self.failures = 0

    def run(self, reserve_seconds: float) -> bool:
        """Until only `reserve_seconds` of the budget are left (False), or nothing is left to try,
        trials of the budget included (True)."""
        while self._meter.remaining_trials >= 1:
            self._check_stop()
            seconds = self._meter.remaining_seconds - reserve_seconds
            if seconds < self._pace.trial_seconds:
                return False
            shares = self._next_shares(self._batch_size(seconds))
            if not shares or not self._run_batch(shares, seconds):
                return True
        return True

    def _batch_size(self, seconds: float) -> int:
        fit = round(min(seconds, _BATCH_SECONDS) / self._pace.trial_seconds)
        size = max(_BATCH[0], min(_BATCH[1], fit))
        return int(min(size, self._meter.remaining_trials))

    def _next_shares(self, batch: int) -> list[Share]:
        """A cover is tried throughout before there is another: with half of one measured, what was
        never tried always looks better."""
        if not has_untried(self._costs, self._weights) and self._batches_left <= 0:
            self._solve()
        self._batches_left -= 1
        self._costs.share_tilings(self._weights)
        return allocate(self._costs, self._weights, batch)

    def _solve(self) -> None:
        """Weights from the best cover; once that is tried throughout, also from the hopeful one
        and the one without fusion."""
        best = self._cover(self._costs.options())
        self._cover_us = best.cost_us
        self._weights = self._count(best.plan, 1.0)
        self._costs.share_tilings(self._weights)
        self._batches_left = 0
        if not has_untried(self._costs, self._weights):
            others = {**self._unfused_weights(), **self._hopeful_weights(best.cost_us)}
            self._weights = {**others, **self._weights}
            self._batches_left = _RESOLVE_BATCHES

    def _hopeful_weights(self, cost_us: float) -> dict[str, float]:
        """Nests of the cover that is best, and leaves few ops alone, if all take what they are
        hoped to."""
        sharing = for_sharing(cost_us, self._ops)
        hopeful = self._cover(self._costs.hopeful_options(), sharing)
        return self._count(hopeful.plan, _UNFUSED_WEIGHT)

    def _unfused_weights(self) -> dict[str, float]:
        options = self._costs.options()
        single = [option for option in options if self._tasks.is_single(option.group)]
        try:
            return self._count(self._cover(single).plan, _UNFUSED_WEIGHT)
        except InvalidInput:
            return {}  # rules tie ops together: there is no plan without fusion

    def _cover(self, options: Sequence[CoverOption], overheads: Overheads | None = None) -> Cover:
        """The best cover, met in a share of what is left of the budget."""
        self._check_stop()
        seconds = min(_SOLVER_SECONDS, _SOLVER_SHARE * self._meter.remaining_seconds)
        program = self._tasks.program
        return best_covers(program, options, overheads=overheads, seconds=seconds)[0]

    def _count(self, plan: FusionPlan, weight: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for group in plan.groups:
            if isinstance(group, FusionGroup):
                digest = self._tasks.candidate_of[group].task
                found[digest] = found.get(digest, 0.0) + weight
        return found

    def _run_batch(self, shares: Sequence[Share], seconds: float) -> bool:
        """Whether anything was tried."""
        proposals = [
            (share.digest, proposal)
            for share in shares
            for proposal in self._costs.search(share.digest).propose(share.count)
        ]
        if not proposals:
            return False
        self._announce([digest for digest, _ in proposals])
        start = self._meter.spent_seconds
        results = self._measure(proposals, seconds)
        self._pace.add(self._meter.spent_seconds - start, len(proposals))
        self._record(proposals, results)
        return True

    def _announce(self, digests: Sequence[str]) -> None:
        new = [d for d in dict.fromkeys(digests) if d not in self._announced]
        self._announced.update(new)
        self._archive.add_nests([self._tasks.nests[digest] for digest in new])

    def _measure(
        self, proposals: Sequence[tuple[str, Proposal]], seconds: float
    ) -> list[TaskResult]:
        made = [self._task(digest, proposal) for digest, proposal in proposals]
        tasks = [task for task in made if isinstance(task, KernelTask)]
        measured = iter(self._device.measure(tasks, seconds))
        return [TaskResult(task) if isinstance(task, Failure) else next(measured) for task in made]

    def _task(self, digest: str, proposal: Proposal) -> KernelTask | Failure:
        task = self._tasks.nests[digest]
        symbol = f"gaf_kernel_{digest[:16]}_{proposal.number}"
        try:
            source = self._templates[proposal.template].generate(
                task.nest, self._device.target, proposal.schedule, symbol
            )
        except Exception as error:  # noqa: BLE001 - a generator's bug costs its candidate only
            message = f"{type(error).__name__}: {error}"
            return Failure(Stage.GENERATE, "generation-failed", message[:500])
        return KernelTask(
            task.check,
            source,
            proposal.template,
            proposal.point,
            incumbent_us=self._costs.incumbent_us(digest),
            timeout_s=self._timeout_s(digest),
        )

    def _timeout_s(self, digest: str) -> float:
        """Generous: two hundred times what is expected, three seconds at least."""
        expected_us = self._costs.measured_us(digest) or self._costs.predicted_us(digest)
        return min(30.0, max(3.0, expected_us * 2e-4))

    def _record(
        self, proposals: Sequence[tuple[str, Proposal]], results: Sequence[TaskResult]
    ) -> None:
        trials: list[Trial] = []
        for (digest, proposal), result in zip(proposals, results, strict=True):
            search = self._costs.search(digest)
            if result.result == UNTRIED:
                search.forget(proposal)
                continue
            trial = Trial(
                digest,
                proposal.number,
                proposal.template,
                proposal.point,
                result.result,
                proposal.predicted_us,
                result.build_seconds,
            )
            search.record(trial)
            trials.append(trial)
        self.failures += sum(isinstance(trial.result, Failure) for trial in trials)
        self._meter.count(len(trials))
        self._archive.add_trials(trials)
        self._report()

    def _report(self) -> None:
        best = self._cover_us
        self._archive.event(
            "progress",
            {
                "phase": "tune-groups",
                "done": self._meter.trials,
                "total": self._meter.budget.trials,
                "best_us": best,
                "remaining_seconds": round(self._meter.remaining_seconds, 2),
                "simulated": is_simulated(self._device.target),
            },
        )
