"""Requests and answers of the REST interface. `/v1` only grows: fields are added, never changed.

Instants are UTC microseconds, times microseconds unless the name says seconds.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from db.devices import Device
from db.plans import PlanRow
from kernel_gen.records import Budget, Failure, Job, JobRequest, Trial


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class BudgetModel(_Request):
    """What a search may spend."""

    seconds: float = Field(default=60.0, ge=0, le=604800)
    trials: int | None = Field(default=None, ge=0, le=1_000_000)


class JobSubmission(_Request):
    """A wish to have a graph tuned."""

    graph: str = Field(description="id of a submitted graph", max_length=64)
    device: str = Field(default="cpu", max_length=64, description='"cpu", "ascend-sim:910b3", …')
    target: str | None = Field(
        default=None, max_length=128, description="which of several targets of that device"
    )
    budget: BudgetModel = BudgetModel()
    rules: str = Field(default="", max_length=1 << 20, description="fusion rules as YAML")
    numerics: str = Field(default="fast", pattern="^(fast|strict)$")
    training: bool = False
    priority: int = Field(default=0, ge=-100, le=100)
    force: bool = Field(default=False, description="search even if there is a plan")

    def request(self) -> JobRequest:
        return JobRequest(
            graph_digest=self.graph,
            device=self.device,
            budget=Budget(self.budget.seconds, self.budget.trials),
            numerics=self.numerics,
            training=self.training,
            rules=self.rules,
            priority=self.priority,
            force=self.force,
        )


class GraphView(BaseModel):
    id: str
    nodes: int


class FailureView(BaseModel):
    stage: str
    code: str
    message: str

    @staticmethod
    def of(failure: Failure) -> FailureView:
        return FailureView(stage=failure.stage.value, code=failure.code, message=failure.message)


class JobView(BaseModel):
    """A job. `plan` is the id of what it found."""

    id: str
    state: str
    key: str
    graph: str
    device: str
    budget: BudgetModel
    numerics: str
    training: bool
    rules: str
    priority: int
    force: bool
    tenant: str
    attempts: int
    spent_seconds: float
    created_us: int
    updated_us: int
    cancel_requested: bool
    plan: str | None
    error: FailureView | None

    @staticmethod
    def of(job: Job) -> JobView:
        request = job.request
        return JobView(
            id=job.id,
            state=job.state.value,
            key=job.key,
            graph=request.graph_digest,
            device=request.device,
            budget=BudgetModel(seconds=request.budget.seconds, trials=request.budget.trials),
            numerics=request.numerics,
            training=request.training,
            rules=request.rules,
            priority=request.priority,
            force=request.force,
            tenant=job.tenant,
            attempts=job.attempts,
            spent_seconds=job.spent_seconds,
            created_us=job.created_us,
            updated_us=job.updated_us,
            cancel_requested=job.cancel_requested,
            plan=job.plan_id,
            error=None if job.error is None else FailureView.of(job.error),
        )


class JobPage(BaseModel):
    """`next` is the cursor of the following page, null at the end."""

    jobs: list[JobView]
    next: str | None


class TrialView(BaseModel):
    """One trial: `median_us` where it was measured, `failure` where it was not. `kind` is what ran:
    a kernel (those are what a budget counts), a whole program, or the framework as a reference."""

    group: str
    number: int
    template: str
    point: dict[str, int | str]
    predicted_us: float | None
    median_us: float | None
    failure: FailureView | None
    build_seconds: float
    kind: str

    @staticmethod
    def of(trial: Trial) -> TrialView:
        failure = trial.result if isinstance(trial.result, Failure) else None
        return TrialView(
            group=trial.group,
            number=trial.number,
            template=trial.template,
            point=dict(trial.point),
            predicted_us=trial.predicted_us,
            median_us=trial.median_us,
            failure=None if failure is None else FailureView.of(failure),
            build_seconds=trial.build_seconds,
            kind=trial.kind.value,
        )


class TrialPage(BaseModel):
    trials: list[TrialView]
    next: str | None


class PlanView(BaseModel):
    """A plan as lists show it. `status` is published, superseded or revoked; `speedup` is
    baseline over measured."""

    id: str
    key: str
    target: str
    status: str
    measured_us: float
    baseline_us: float
    speedup: float | None
    improved: bool
    budget_seconds: float
    job: str | None
    note: str | None
    created_us: int

    @staticmethod
    def of(row: PlanRow) -> PlanView:
        return PlanView(
            id=row.id,
            key=row.key,
            target=row.target,
            status=row.status.value,
            measured_us=row.measured_us,
            baseline_us=row.baseline_us,
            speedup=row.baseline_us / row.measured_us if row.measured_us else None,
            improved=row.improved,
            budget_seconds=row.budget_seconds,
            job=row.job_id,
            note=row.note,
            created_us=row.created_us,
        )


class PlanPage(BaseModel):
    plans: list[PlanView]
    next: str | None


class PlanDetail(PlanView):
    """A plan with its whole plan.json."""

    plan: dict[str, Any]


class Revocation(_Request):
    reason: str = Field(min_length=1, max_length=1000)


class LookupView(BaseModel):
    """A plan that the caller may run. `match` is exact or compatible."""

    match: str
    id: str
    key: str
    abi: int
    torch: str
    libc: str
    requires: list[str]
    measured_us: float
    baseline_us: float
    improved: bool
    budget_seconds: float
    bundle: str


class TrustView(BaseModel):
    """The key that signs this server's bundles."""

    public_key: str
    fingerprint: str


class DeviceView(BaseModel):
    """`alive` is false after 30 s without a heartbeat; `target` is as in plan keys."""

    id: str
    worker: str
    device: str
    target: str
    state: str
    job: str | None
    detail: str | None
    started_us: int
    heartbeat_us: int
    alive: bool

    @staticmethod
    def of(device: Device) -> DeviceView:
        return DeviceView(
            id=device.id,
            worker=device.worker,
            device=device.device,
            target=device.target.key,
            state=device.state,
            job=device.job_id,
            detail=device.detail,
            started_us=device.started_us,
            heartbeat_us=device.heartbeat_us,
            alive=device.alive,
        )


class DeviceList(BaseModel):
    devices: list[DeviceView]


class Health(BaseModel):
    status: str


class ProblemView(BaseModel):
    """RFC 9457 problem details; `code` is the last part of `type`."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    code: str
    detail: str
    instance: str
