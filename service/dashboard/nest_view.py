"""The search over one nest of a job: what each parameter did, how steady and how well foreseen the
times were.

Importances are Optuna's PED-ANOVA (Watanabe et al., "PED-ANOVA: Efficiently Quantifying
Hyperparameter Importance in Arbitrary Subspaces", 2023), on a study rebuilt from stored trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cost_models.metrics import rank_correlation
from db.errors import NotFound
from db.store import Store
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.records import Failure, Job, Measurement, Trial, TrialKind
from service.dashboard.numbers import UNSTEADY, show_us
from service.dashboard.plot import Axis, Line, Mark, Plot, plot_of, scale_of

_FEWEST_FOR_IMPORTANCE = 12  # measured trials; with fewer the order is noise
_GOOD_SHARE = 0.25  # of the trials count as good: a search has few of them
_SPREAD_ROWS = 12
_MOST_POINTS = 400  # of a plot; every n-th trial beyond
_LISTED = 25
_FAR_OUT = 1.5  # times the slowest median shown: samples beyond are drawn at the edge
_BEYOND = 5.0  # times the best: what is slower is drawn at the edge
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NestRow:
    """The trials of one nest in short. `ops` are those that compute, or its views where nothing
    does, and `views` counts the others. `predicted_us` is what the cost model said of the best."""

    digest: str
    ops: tuple[str, ...]
    views: int
    trials: int
    failed: int
    best: Trial | None

    @property
    def best_us(self) -> float | None:
        return self.best.median_us if self.best else None

    @property
    def predicted_us(self) -> float | None:
        return self.best.predicted_us if self.best else None

    @property
    def off(self) -> float | None:
        """Measured over predicted."""
        if self.best_us is None or not self.predicted_us:
            return None
        return self.best_us / self.predicted_us

    @property
    def is_unsteady(self) -> bool:
        """Whether the samples of the best trial disagree: the machine was not quiet."""
        best = self.best.result if self.best else None
        return isinstance(best, Measurement) and best.spread > UNSTEADY


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Predictions against measurements. `correlation` is Kendall's tau of the points shown."""

    plot: Plot
    correlation: float
    points: int


@dataclass(frozen=True, slots=True)
class NestView:
    """One nest under one template. `importance` in shares of one, empty if trials are too few."""

    row: NestRow
    templates: tuple[tuple[str, int], ...]  # name, trials; most tried first
    template: str
    parameters: tuple[tuple[str, Plot], ...]
    importance: tuple[tuple[str, float], ...]
    spread: Plot | None
    foreseen: Foreseen | None
    failures: tuple[tuple[str, str, int], ...]  # code, message, count
    listed: tuple[Trial, ...]  # the fastest of the template


def nest_rows(trials: Sequence[Trial], ops: Mapping[str, tuple[str, ...]]) -> list[NestRow]:
    """The nests of tuned trials, the longest best time first; `ops` names their ops by digest."""
    tried: dict[str, list[Trial]] = {}
    for trial in trials:
        tried.setdefault(trial.group, []).append(trial)
    rows = [_row(digest, ops.get(digest, ()), found) for digest, found in tried.items()]
    return sorted(rows, key=lambda row: -(row.best_us or 0.0))


def tuned_trials(store: Store, job: Job) -> list[Trial]:
    """Trials of tilings: without framework parts and whole programs."""
    stored = (trial for _, trial in store.trials.of_job(job.id))
    return [trial for trial in stored if trial.kind is TrialKind.KERNEL]


def nest_view(store: Store, job: Job, digest: str, template: str | None) -> NestView:
    """The view of a nest that the job has tried; raises NotFound."""
    trials = [trial for trial in tuned_trials(store, job) if trial.group == digest]
    if not trials:
        raise NotFound(f"job {job.id[:8]} has no trials of {digest[:16]!r}")
    counts = Counter(trial.template for trial in trials).most_common()
    row = _row(digest, store.trials.ops(job.id).get(digest, ()), trials)
    chosen = template or (row.best.template if row.best else counts[0][0])
    mine = [trial for trial in trials if trial.template == chosen]
    if not mine:
        raise NotFound(f"nest {digest[:16]} has no trials of template {chosen[:40]!r}")
    fastest = sorted((t for t in mine if t.median_us is not None), key=lambda t: t.median_us or 0)
    return NestView(
        row=row,
        templates=tuple(counts),
        template=chosen,
        parameters=parameter_plots(fastest),
        importance=importance(fastest),
        spread=_spread(fastest[:_SPREAD_ROWS]),
        foreseen=foreseen([t for t in trials if t.median_us is not None]),
        failures=_failures(mine),
        listed=tuple(fastest[:_LISTED]),
    )


def _row(digest: str, ops: tuple[str, ...], trials: Sequence[Trial]) -> NestRow:
    measured = [trial for trial in trials if trial.median_us is not None]
    best = min(measured, key=lambda trial: trial.median_us or 0.0, default=None)
    computing = tuple(op for op in ops if spec(op).kind not in (OpKind.VIEW, OpKind.SOURCE)) or ops
    views = len(ops) - len(computing)
    return NestRow(digest, computing, views, len(trials), len(trials) - len(measured), best)


def _failures(trials: Sequence[Trial]) -> tuple[tuple[str, str, int], ...]:
    failed = [t.result for t in trials if isinstance(t.result, Failure)]
    counted = Counter((failure.code, failure.message) for failure in failed)
    return tuple((code, message, count) for (code, message), count in counted.most_common(_LISTED))


def parameter_plots(trials: Sequence[Trial]) -> tuple[tuple[str, Plot], ...]:
    """One plot per parameter that took several values: its choices against latency. The trials
    are measured ones, the fastest first."""
    names = dict.fromkeys(name for trial in trials for name, _ in trial.point)
    found = [(name, _choices(trials, name)) for name in names]
    return tuple(
        (name, _parameter(trials, name, choices)) for name, choices in found if len(choices) > 1
    )


def _choices(trials: Sequence[Trial], name: str) -> list[int | str]:
    """Values that a parameter took: numbers ascending, then words."""
    taken = {value for trial in trials for key, value in trial.point if key == name}
    return sorted(taken, key=lambda v: (isinstance(v, str), v if isinstance(v, int) else 0, str(v)))


def _parameter(trials: Sequence[Trial], name: str, choices: Sequence[int | str]) -> Plot:
    place = {choice: float(number) for number, choice in enumerate(choices)}
    best = trials[0]
    ceiling = _BEYOND * (best.median_us or 0.0)
    marks = [
        _mark(
            place[dict(t.point)[name]],
            t.median_us or 0.0,
            ceiling,
            f"{name}={dict(t.point)[name]}: {show_us(t.median_us)} (trial {t.number})",
            "best" if t is best else "usual",
        )
        for t in reversed(thinned(trials))  # the best one is drawn last, on top
        if name in dict(t.point)
    ]
    y = scale_of([mark.y for mark in marks], log=True)
    words = tuple((place[choice], str(choice)[:12]) for choice in choices)
    x = scale_of(place.values(), log=False)
    return plot_of(
        f"{name} against latency, {len(marks)} trials",
        Axis(x, "", str, words[:: max(1, len(words) // 8)]),
        Axis(y, f"latency by {name}", show_us),
        marks,
    )


def _mark(x: float, us: float, ceiling: float, title: str, kind: str) -> Mark:
    """A mark that stays below the ceiling: one slow trial must not flatten all others."""
    return Mark(x, min(us, ceiling), title, "beyond" if us > ceiling else kind)


def importance(trials: Sequence[Trial]) -> tuple[tuple[str, float], ...]:
    """Shares of the parameters in what tells good trials from others, largest first."""
    names = {name for trial in trials for name, _ in trial.point}
    varied = sorted(name for name in names if len(_choices(trials, name)) > 1)
    if len(trials) < _FEWEST_FOR_IMPORTANCE or not varied:
        return ()
    import optuna  # takes half a second: only who asks for it waits
    from optuna.distributions import BaseDistribution, IntDistribution
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study()
    choices = {name: _choices(trials, name) for name in varied}
    domains = {name: IntDistribution(0, len(taken) - 1) for name, taken in choices.items()}
    for trial in trials:  # choices by position, as the search has them
        point = {name: choices[name].index(v) for name, v in trial.point if name in choices}
        known: dict[str, BaseDistribution] = {name: domains[name] for name in point}
        study.add_trial(
            optuna.trial.create_trial(params=point, distributions=known, value=trial.median_us)
        )
    evaluator = PedAnovaImportanceEvaluator(target_quantile=_GOOD_SHARE)
    return tuple(get_param_importances(study, evaluator=evaluator).items())


def _spread(trials: Sequence[Trial]) -> Plot | None:
    """All samples of the fastest trials, one line each, medians marked."""
    taken = [(t, t.result) for t in trials if isinstance(t.result, Measurement)]
    if all(len(result.samples_us) == 1 for _, result in taken):
        return None  # a simulator gives the same time again and again
    marks: list[Mark] = []
    edge = _FAR_OUT * max(result.median_us for _, result in taken)
    for number, (trial, result) in enumerate(taken):
        said, line = f"trial {trial.number}", float(-number)
        for us in thinned(sorted(result.samples_us), 40):
            kind = "sample" if us <= edge else "beyond"
            marks.append(Mark(min(us, edge), line, f"{said}: sample of {show_us(us)}", kind))
        middle = f"{said}: median {show_us(result.median_us)}, spread {result.spread:.1%}"
        marks.append(Mark(result.median_us, line, middle, "best"))
    last = len(taken) - 1
    x = scale_of([mark.x for mark in marks], log=False)
    words = tuple((float(-n), f"#{trial.number}") for n, (trial, _) in enumerate(taken))
    return plot_of(
        f"Samples of the {len(taken)} fastest trials",
        Axis(x, "time of a call", show_us),
        Axis(scale_of([-last - 0.3, 0.3], log=False), "trial, the fastest first", str, words),
        marks,
    )


def foreseen(trials: Sequence[Trial], job_id: str = "") -> Foreseen | None:
    """Predicted against measured; with a job's id each point leads to its nest."""
    shown = thinned([t for t in trials if t.median_us is not None and t.predicted_us])
    pairs = [(t.predicted_us or 0.0, t.median_us or 0.0) for t in shown]
    if not pairs:
        return None
    both = scale_of([time for pair in pairs for time in pair], log=True)
    marks = [
        Mark(
            predicted,
            measured,
            f"trial {t.number}: predicted {show_us(predicted)}, measured {show_us(measured)}",
            "usual",
            f"/jobs/{job_id}/nests/{t.group}" if job_id else "",
        )
        for t, (predicted, measured) in zip(shown, pairs, strict=True)
    ]
    drawn = plot_of(
        f"Predicted against measured time, {len(marks)} trials",
        Axis(both, "predicted", show_us),
        Axis(both, "measured", show_us),
        marks,
        [Line(both.low, both.low, both.high, both.high, "limit", "as predicted")],
    )
    predicted, measured = zip(*pairs, strict=True)
    return Foreseen(drawn, rank_correlation(predicted, measured), len(marks))


def thinned(items: Sequence[T], most: int = _MOST_POINTS) -> Sequence[T]:
    """Every n-th item, so that at most `most` are left; the first one always."""
    return items[:: -(-len(items) // most) or 1]
