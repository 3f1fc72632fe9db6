"""Commands that talk to a service: submit, lookup, jobs, devices."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from graph_autofusion.cli import subject
from graph_autofusion.cli.output import (
    DEFAULT_SERVICE,
    JOB_ID_HELP,
    JOBS,
    SHOWN_ID,
    ApiKeyOption,
    JsonFlag,
    Limit,
    ServiceOption,
    asking,
    print_json,
    print_line,
    print_rows,
    whole_id,
)
from graph_autofusion.cli.tune import Device, Dims, Numerics, Rules, Seconds, Trials, What
from graph_autofusion.client import Client
from graph_autofusion.export import print_graph
from graph_autofusion.job import Job
from graph_autofusion.options import parse_options
from graph_autofusion.progress import tuning_progress, waiting
from graph_autofusion.report import report_of
from kernel_gen.errors import InvalidInput
from kernel_gen.records import Budget, JobState, TrialKind
from kernel_gen.runtime.bundle_format import shown_plan
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import Plan

_JOB_HELP = f"{JOB_ID_HELP}; all jobs if left out"
_STATES = f"only jobs in this state: {', '.join(JobState)}"


def _states() -> list[str]:
    return [str(state) for state in JobState]


def submit(
    what: What,
    seconds: Seconds = 60.0,
    trials: Trials = None,
    rules: Rules = None,
    numerics: Numerics = "fast",
    dim: Dims = None,
    device: Device = "cpu",
    wait: Annotated[bool, typer.Option("--wait", help="follow the job to its end")] = False,
    force: Annotated[bool, typer.Option("--force", help="search though there is a plan")] = False,
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask a service for a plan. Weights stay here."""
    # The device is the service's: it need not be one of this machine.
    options = parse_options(
        budget=Budget(seconds, trials),
        rules=rules,
        numerics=numerics,
        environ={},
    )
    with Client(service, api_key) as client:
        graph = subject.load_subject(what, dim or ()).graph
        with waiting(f"asking {service}"):
            job = client.submit(
                graph,
                device=device,
                budget=options.budget,
                rules=options.rules,
                numerics=options.numerics,
                force=force,
            )
        if wait:
            _follow(job, service, options.budget)
        plan = _plan_of(client, job) if wait else None
        _print_job(job, service, as_json, plan)
        if wait and job.state is not JobState.DONE:
            raise typer.Exit(1)


def _follow(job: Job, service: str, budget: Budget) -> None:
    """Shows how far the job is until it has ended. Ctrl-C ends only the waiting."""
    _tell(f"job {job.id}, dashboard {_page(job, service)}")
    try:
        with tuning_progress(budget) as on_event:
            for event in job.events():
                on_event(event)
    except KeyboardInterrupt:
        _tell(f"the job goes on: gaf jobs {job.id} shows it, with --cancel ends it")
        raise
    job.refresh()


def _tell(text: str) -> None:
    typer.echo(text, err=True)


def _page(job: Job, service: str) -> str:
    return f"{service.rstrip('/')}/jobs/{job.id}"


def _plan_of(client: Client, job: Job) -> Plan | None:
    """The plan of a job that has ended, to be read: its signer need not be trusted for that."""
    plan_id = job.details["plan"]
    if plan_id is None:
        return None
    with waiting("fetching the plan"):
        files = client.bundle(plan_id)
    return shown_plan(files)


def _print_job(
    job: Job,
    service: str,
    as_json: bool,
    plan: Plan | None = None,
    trials: Sequence[dict[str, Any]] | None = None,
) -> None:
    """The job, where its dashboard page is, of a plan what `gaf tune` shows, and of `trials` how
    many there are and why some failed."""
    page = _page(job, service)
    if as_json:
        told = {} if plan is None else {"report": json.loads(report_of(plan, "hit").to_json())}
        told |= {} if trials is None else _counted(trials)
        print_json({**job.details, "dashboard": page, **told})
        return
    print_line(f"job {job.id}: {job.state}")
    print_line(f"dashboard {page}")
    if job.details["plan"]:
        print_line(f"plan id {job.details['plan']}")
    if plan is None:
        print_line(f"key {job.key}")
    else:
        print_graph(plan)
    if job.details.get("error"):
        error = job.details["error"]
        print_line(f"{error['message']} [{error['code']}]")
    if trials is not None:
        _print_trials(_counted(trials))


def _counted(trials: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many kernels and whole programs a job has tried, and what failed of them."""
    kinds = Counter(trial["kind"] for trial in trials)
    failed = [(trial["kind"], trial["failure"]) for trial in trials if trial["failure"]]
    reasons = Counter((kind, failure["code"]) for kind, failure in failed)
    examples = {(kind, failure["code"]): failure["message"] for kind, failure in failed}
    return {
        "trials": kinds[TrialKind.KERNEL],
        "programs": kinds[TrialKind.PROGRAM],
        "failures": [
            {"kind": kind, "code": code, "count": count, "example": examples[kind, code]}
            for (kind, code), count in reasons.most_common()
        ],
    }


def _print_trials(counted: dict[str, Any]) -> None:
    print_line(f"{counted['trials']} trials of kernels, {counted['programs']} of whole programs")
    rows = [tuple(failure.values()) for failure in counted["failures"]]
    if rows:
        columns = ("what", "code", "times", "for example")
        print_rows(rows, columns, title="what failed", as_json=False)


def lookup(
    key: Annotated[str, typer.Argument(help="a plan's key")],
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask a service whether it has a plan for a key; exit code 1 if it has none."""
    with asking(service, api_key) as client:
        found = client.find(PlanKey.parse(key))
    if as_json:
        print_json({name: getattr(found, name) for name in found.__slots__})
    elif found.plan_id is not None:
        print_line(f"{found.match}: plan {found.plan_id}")
    else:
        working = f", job {found.job_id} works on it" if found.job_id else ""
        print_line(f"miss: {found.reason}{working}")
    if found.plan_id is None:
        raise typer.Exit(1)


def jobs(
    job_id: Annotated[str | None, typer.Argument(help=_JOB_HELP)] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="cancel that job")] = False,
    state: Annotated[
        str | None, typer.Option("--state", help=_STATES, autocompletion=_states)
    ] = None,
    limit: Limit = 50,
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List a service's jobs; show one with what failed, or cancel it."""
    if cancel and job_id is None:
        raise InvalidInput("--cancel needs the id of a job")
    if job_id is not None:
        with asking(service, api_key) as client:
            job = client.job(_whole_id(client, job_id))
            if cancel:
                _cancel(job)
            trials = [trial for trial in job.trials() if trial["kind"] != TrialKind.REFERENCE]
        _print_job(job, service, as_json, trials=trials)
        return
    with asking(service, api_key) as client:
        found = [job.details for job in client.jobs(state, limit)]
    if as_json:
        print_json(found)
        return
    rows = [(job["id"], job["state"], job["device"], _result(job)) for job in found]
    print_rows(rows, ("id", "state", "device", "result"), title="jobs", as_json=False)


def _whole_id(client: Client, text: str) -> str:
    return whole_id(JOBS, text, lambda: [job.id for job in client.jobs(limit=500)])


def _cancel(job: Job) -> None:
    if JobState(job.details["state"]).is_terminal:
        _tell(f"job {job.id} has ended already: there is nothing to cancel")
    else:
        job.cancel()


def _result(job: dict[str, Any]) -> str:
    """What a row has room for: where the plan's id begins, or why there is none."""
    if job["plan"]:
        return str(job["plan"][:SHOWN_ID])
    return str(job["error"]["code"]) if job["error"] else ""


def devices(
    service: ServiceOption = DEFAULT_SERVICE,
    api_key: ApiKeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the devices that a service's workers have announced."""
    with asking(service, api_key) as client:
        found = client.devices()
    if as_json:
        print_json(found)
        return
    columns = ("worker", "device", "state", "job", "alive", "target")
    rows = [tuple(device.get(column) for column in columns) for device in found]
    print_rows(rows, columns, title="devices", as_json=False)
