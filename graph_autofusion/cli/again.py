"""`gaf verify` and `gaf replay`: what was measured, measured again; what was searched, searched
again from the record."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph_autofusion.cli.database import DbOption, need_server, opened_store
from graph_autofusion.cli.output import (
    JOB_ID_HELP,
    JOBS,
    PLANS,
    SHOWN_ID,
    JsonFlag,
    is_id,
    print_json,
    print_line,
    print_rows,
    whole_id,
)
from graph_autofusion.progress import waiting
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.records import Failure, Trial
from kernel_gen.runtime.boxes import show_us
from kernel_gen.runtime.key import PREFIX, PlanKey
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.requires import sentence, this_process

if TYPE_CHECKING:
    from tuner.verify import Verdict

_PLAN_HELP = "the folder of a bundle, or the id or key of a plan in the store"


def verify(
    plan: Annotated[str, typer.Argument(help=_PLAN_HELP)],
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="of interleaved runs")] = 5.0,
    db: DbOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Measure a plan again beside the baseline; exit code 1 if it is wrong or faster no more."""
    need_server()
    from tuner.verify import verify as run

    with waiting("reading the plan"):
        subject = _plan(plan, db)
    reason = sentence(subject.provenance, this_process())
    if reason is not None:
        raise Unavailable(f"this plan cannot run here: {reason}")
    with waiting("checking and timing the plan"):
        verdict = run(subject, seconds)
    (_print_verdict_json if as_json else _print_verdict)(verdict)
    if not verdict.holds:
        raise typer.Exit(1)


def _plan(text: str, db: str) -> Plan:
    """The plan of a bundle folder, or of an id or key in the store."""
    from kernel_gen.runtime.bundle import read
    from kernel_gen.runtime.trust import Trust

    if Path(text).is_dir():
        return read(Path(text), Trust.of_user())
    from db.errors import NotFound

    with opened_store(db) as store:
        if text.startswith(PREFIX):
            plan_id = store.plans.head(str(PlanKey.parse(text)))
        else:
            _require_id(text)
            plan_id = whole_id(PLANS, text, lambda: [row.id for row in store.plans.list(limit=500)])
        if plan_id is None:
            raise NotFound(f"the store has no plan for {text}")
        return store.plans.get(plan_id)


def _require_id(text: str) -> None:
    if not is_id(text):
        raise InvalidInput(
            f"{text!r}: neither a bundle's folder nor a plan's id; an id is needed whole, or its "
            f"first {SHOWN_ID} characters or more, as `gaf plans` shows them"
        )


def _print_verdict(verdict: Verdict) -> None:
    summary = verdict.plan.summary
    plan_us, baseline_us = verdict.times_us
    rows = [
        ("baseline", summary.baseline_us, baseline_us),
        ("plan", summary.measured_us, plan_us),
    ]
    shown = [(name, show_us(then), _shown(now)) for name, then, now in rows]
    print_rows(shown, ("what", "recorded", "now"), title="plan", as_json=False)
    if isinstance(verdict.result, Failure):
        print_line(f"not right here: {verdict.result.message} [{verdict.result.code}]")
    elif verdict.speedup is None:
        print_line("the framework could not run the program")
    else:
        print_line(f"right; speedup {verdict.speedup:.2f}x")


def _shown(us: float | None) -> str:
    return "failed" if us is None else show_us(us)


def _print_verdict_json(verdict: Verdict) -> None:
    summary, result = verdict.plan.summary, verdict.result
    plan_us, baseline_us = verdict.times_us
    print_json(
        {
            "plan": verdict.plan.id,
            "key": str(verdict.plan.key),
            "holds": verdict.holds,
            "speedup": verdict.speedup,
            "measured_us": plan_us,
            "baseline_us": baseline_us,
            "recorded": {"measured_us": summary.measured_us, "baseline_us": summary.baseline_us},
            "failure": dataclasses.asdict(result) if isinstance(result, Failure) else None,
        }
    )


def replay(
    job: Annotated[str, typer.Argument(help=f"a job of the store: {JOB_ID_HELP}")],
    db: DbOption = "",
    as_json: JsonFlag = False,
) -> None:
    """Search again from a job's recorded trials, without a device: what would be chosen now?"""
    with opened_store(db) as store, waiting("searching in the record"):
        from tuner.replay import replay_job

        job = whole_id(JOBS, job, lambda: [row.id for row in store.jobs.list(limit=500)])
        replayed = replay_job(store, job)
    trials, plan = replayed.trials, replayed.plan
    if as_json:
        print_json(
            {
                "job": job,
                "key": str(plan.key),
                "trials": len(trials),
                "failures": sum(isinstance(trial.result, Failure) for trial in trials),
                "kernels": [_kernel(plan, number) for number in range(len(plan.kernels))],
                "expected_us": plan.summary.measured_us,
                "published": replayed.published_id,
                "same_cover": replayed.same_cover,
            }
        )
        return
    _print_replay(plan, trials, replayed.same_cover)


def _print_replay(plan: Plan, trials: Sequence[Trial], same_cover: bool | None) -> None:
    kernels = [_kernel(plan, number) for number in range(len(plan.kernels))]
    rows = [(k["ops"], k["template"], _shown(k["recorded_us"])) for k in kernels]
    title = f"kernels chosen from {len(trials)} recorded trials"
    print_rows(rows, ("ops", "template", "recorded"), title=title, as_json=False)
    if same_cover is not None:
        print_line(f"the published plan has {'the same' if same_cover else 'another'} partition")


def _kernel(plan: Plan, number: int) -> dict[str, Any]:
    kernel = plan.kernels[number]
    return {
        "ops": " + ".join(kernel.ops),
        "template": kernel.schedule.template,
        "recorded_us": None if kernel.measurement is None else kernel.measurement.median_us,
    }
