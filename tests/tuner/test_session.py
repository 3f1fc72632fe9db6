import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tuner_jobs import Sabotaged, add_relu_graph, assignment, measurement, pointwise, steady_times
from tuner_templates import TARGET, GridTemplate

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.candidates import candidates
from kernel_gen.fusion.group import FusionGroup
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Compute, LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import TensorType
from kernel_gen.records import COVER_GROUP, Failure, Measurement, Stage, Trial
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.plan import Plan
from kernel_gen.schedule.schedule import Schedule
from tuner.archive import MemoryArchive
from tuner.child.protocol import FRAMEWORK_ERROR
from tuner.devices.device import LocalDevice
from tuner.replay import Lookup, ReplayDevice, replay
from tuner.session import Assignment, Session


class Stopped(Exception):
    pass


def run(
    lookup: Lookup, subject: Assignment | None = None, archive: MemoryArchive | None = None
) -> tuple[Plan, MemoryArchive]:
    kept = archive or MemoryArchive()
    device = ReplayDevice(TARGET, lookup)
    return Session(subject or assignment(TARGET, trials=20), device, kept).run(), kept


def kernel_trials(archive: MemoryArchive) -> list[Measurement | Failure]:
    return [t.result for t in nest_trials(archive.trials)]


def nest_trials(trials: Sequence[Trial]) -> list[Trial]:
    return [t for t in trials if t.template not in ("framework", "baseline", "cover")]


def test_three_ops_become_one_kernel_where_that_is_cheaper() -> None:
    plan, archive = run(steady_times())
    assert [type(group) for group in plan.cover.groups] == [FusionGroup]
    assert plan.kernels[0].ops == ("add", "relu", "mul")
    assert plan.summary.improved
    assert plan.summary.measured_us == pytest.approx(5.0)
    assert {"library", "tune-groups", "whole-program"} <= {
        str(data["phase"]) for kind, data in archive.events if kind == "progress"
    }


class Timid:
    """A cost model that holds fusion to be worse than it is."""

    name = "timid"

    def predict_us(self, nest: LoopNest, schedule: Schedule | None, target: Target) -> float:
        ops = sum(isinstance(statement, Compute) for statement in nest.statements)
        return 4.0 if ops == 1 else 6.0 * ops


def test_a_fusion_that_the_model_underrates_is_tried() -> None:
    device, archive = ReplayDevice(TARGET, steady_times()), MemoryArchive()
    plan = Session(assignment(TARGET, trials=120), device, archive, model=Timid()).run()
    assert [kernel.ops for kernel in plan.kernels] == [("add", "relu", "mul")]


def times_by_size(*kernel_us: float) -> Lookup:
    """Kernels of one, two and three ops take these times."""
    parts = candidates(add_relu_graph(), templates(TARGET), TARGET).groups
    size = {part.task: len(part.group.nodes) for part in parts}

    def lookup(group: str, template: str, point: object) -> Measurement | Failure | None:
        if template in ("framework", "baseline"):
            return measurement(20.0)
        return measurement(kernel_us[size[group] - 1])

    return lookup


@pytest.mark.parametrize(("fused_us", "kernels"), [(5.02, 1), (5.2, 3)])
def test_what_is_as_fast_within_the_noise_shares_a_kernel(fused_us: float, kernels: int) -> None:
    plan, _ = run(times_by_size(5.0 / 3, 100.0, fused_us), assignment(TARGET, trials=60))
    assert len(plan.kernels) == kernels
    assert len(plan.summary.unfused) == (3 if kernels == 3 else 0)
    assert {entry.code for entry in plan.summary.unfused} <= {"not-faster"}


def test_a_fusion_that_loses_by_its_first_guesses_is_tuned() -> None:
    parts = candidates(add_relu_graph(), templates(TARGET), TARGET).groups
    (fused,) = (part.task for part in parts if len(part.group.nodes) == 3)
    apart, tried = times_by_size(9.5, 100.0, 33.0), 0

    def better_later(group: str, template: str, point: object) -> Measurement | Failure | None:
        nonlocal tried
        tried += group == fused
        return measurement(5.0) if group == fused and tried > 4 else apart(group, template, point)

    plan, _ = run(better_later, assignment(TARGET, trials=60))
    assert [kernel.ops for kernel in plan.kernels] == [("add", "relu", "mul")]


def test_what_other_programs_take_now_and_then_does_not_decide() -> None:
    quiet = times_by_size(5.0, 100.0, 5.0)

    def disturbed(group: str, template: str, point: object) -> Measurement | Failure | None:
        result = quiet(group, template, ())
        if not isinstance(result, Measurement) or result.median_us != 5.0:
            return result
        mostly = 60.0 if group == fused else 5.0
        return Measurement((5.0,) * 3 + (mostly,) * 5, result.protocol)

    parts = candidates(add_relu_graph(), templates(TARGET), TARGET).groups
    (fused,) = (part.task for part in parts if len(part.group.nodes) == 3)
    plan, _ = run(disturbed, assignment(TARGET, trials=60))
    assert [kernel.ops for kernel in plan.kernels] == [("add", "relu", "mul")]


def test_the_framework_is_published_where_nothing_beats_it() -> None:
    plan, _ = run(steady_times(kernel_us=500.0, framework_us=20.0))
    assert plan.kernels == ()
    assert not plan.summary.improved
    assert [(entry.op, entry.code) for entry in plan.summary.unfused] == [
        (op, "faster") for op in ("add", "relu", "mul")
    ]


@pytest.mark.parametrize("trials", [3, 60])
def test_the_time_of_one_kernel_per_op_is_that_of_a_run(trials: int) -> None:
    plan, archive = run(steady_times(), assignment(TARGET, trials=trials))
    runs = [t.result for t in archive.trials if t.group == COVER_GROUP]
    times = {result.median_us for result in runs if isinstance(result, Measurement)}
    assert plan.summary.unfused_us is None or plan.summary.unfused_us in times
    assert trials < 60 or plan.summary.unfused_us is not None


def test_ops_whose_kernels_were_never_measured_do_not_claim_that_one_lost() -> None:
    def broken_kernels(group: str, template: str, point: object) -> Measurement | Failure:
        if template in ("framework", "baseline"):
            return measurement(20.0)
        return Failure(Stage.BUILD, "compile-error", "broken")

    plan, _ = run(broken_kernels)
    assert plan.kernels == ()
    assert {entry.code for entry in plan.summary.unfused} == {"unmeasured"}


def test_a_budget_of_trials_is_kept() -> None:
    _, archive = run(steady_times(), assignment(TARGET, trials=7))
    assert len(kernel_trials(archive)) == 7


def test_kernels_are_tried_though_setting_up_took_most_of_the_budget() -> None:
    late = replace(assignment(TARGET, seconds=10.0, trials=3), spent_seconds=6.5)
    _, archive = run(steady_times(), late)
    assert len(kernel_trials(archive)) == 3


def test_an_exhausted_search_ends_before_its_budget() -> None:
    archive = MemoryArchive()
    device = ReplayDevice(TARGET, steady_times())
    small = GridTemplate(axes=1)
    subject = assignment(TARGET, seconds=3600.0)
    plan = Session(subject, device, archive, templates=[small]).run()
    assert plan.summary.tuning_seconds < 60
    tried = [(t.group, t.point) for t in nest_trials(archive.trials)]
    assert len(tried) == len(set(tried)) == 11 * len({group for group, _ in tried})


def test_a_long_search_runs_whole_programs_early() -> None:
    def slowly(group: str, template: str, point: object) -> Measurement | Failure | None:
        time.sleep(0.005)
        return steady_times()(group, template, point)

    archive, device = MemoryArchive(), ReplayDevice(TARGET, slowly)
    subject = assignment(TARGET, seconds=120.0, trials=30)
    Session(subject, device, archive, first_leg_seconds=0.05).run()
    phases = [(kind, data.get("phase")) for kind, data in archive.events]
    first = phases.index(("cover", None))
    assert ("progress", "tune-groups") in phases[first:]


def test_the_published_kernel_is_the_fastest_one_tried() -> None:
    counter = itertools.count()

    def lookup(group: str, template: str, point: object) -> Measurement:
        return measurement(20.0 if template in ("framework", "baseline") else 9 - next(counter) % 5)

    plan, archive = run(lookup)
    best = min(t.median_us for t in nest_trials(archive.trials) if t.median_us is not None)
    assert plan.kernels[0].measurement is not None
    assert plan.kernels[0].measurement.median_us == best


def test_failures_leave_the_framework() -> None:
    def lookup(group: str, template: str, point: object) -> Measurement | Failure:
        if template in ("framework", "baseline"):
            return measurement(20.0)
        return Failure(Stage.CHECK, "wrong-result", "planted")

    plan, archive = run(lookup)
    assert plan.kernels == ()
    assert plan.summary.failures == len(kernel_trials(archive)) > 0


def test_the_framework_is_no_improvement_over_itself() -> None:
    """However much faster a noisy run says that it was."""

    def lookup(group: str, template: str, point: object) -> Measurement | Failure:
        if template == "baseline":
            return measurement(20.0)
        if template == "framework":
            return measurement(2.0)  # of three: 6 µs as a plan
        return Failure(Stage.CHECK, "wrong-result", "planted")

    plan, _ = run(lookup)
    assert plan.kernels == ()
    assert (plan.summary.measured_us, plan.summary.baseline_us) == (20.0, 20.0)
    assert not plan.summary.improved


def test_a_program_without_any_time_has_no_plan() -> None:
    def nothing(group: str, template: str, point: object) -> Failure:
        return Failure(Stage.CHECK, "wrong-result", "planted")

    def unknown(group: str, template: str, point: object) -> Failure | None:
        return None if template == "baseline" else nothing(group, template, point)

    with pytest.raises(InvalidInput, match="cannot be timed: this candidate is not in the record"):
        run(unknown)


def test_a_program_that_refuses_drawn_values_ends_before_kernels_are_tried() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (8, 8), None))
    call = {"target": "aten.linalg_cholesky.default", "args": ((("value", 0),), ())}
    why = {"code": "no-lowering", "sentence": "The library's."}
    (made,) = b.op("framework", x, out_types=[b.type_of(x)], **call, **why)
    b.output(b.op("relu", made))

    def lookup(group: str, template: str, point: object) -> Measurement | Failure:
        return Failure(Stage.RUN, FRAMEWORK_ERROR, "not positive-definite")

    archive = MemoryArchive()
    with pytest.raises(InvalidInput, match="drawn at random: not positive-definite"):
        run(lookup, assignment(TARGET, graph=b.build()), archive)
    assert not kernel_trials(archive)


def test_what_a_search_was_given_is_kept() -> None:
    plan, _ = run(steady_times(), assignment(TARGET, seconds=40.0, trials=9))
    assert (plan.summary.budget_seconds, plan.summary.budget_trials) == (40.0, 9)


def test_a_stopped_job_goes_on_from_its_trials() -> None:
    archive = MemoryArchive()

    def stop_after_some_trials() -> None:
        if nest_trials(archive.trials):
            raise Stopped

    device = ReplayDevice(TARGET, steady_times())
    subject = assignment(TARGET, trials=20)
    with pytest.raises(Stopped):
        Session(subject, device, archive, stop_after_some_trials).run()
    before = archive.trials
    assert before
    plan, after = run(steady_times(), subject, MemoryArchive(resumed=before))
    points = [(t.group, t.number, t.point) for t in [*before, *after.trials]]
    assert len(set(points)) == len(points)
    assert plan.summary.trials >= len(nest_trials(before)) > 0
    assert len(nest_trials([*before, *after.trials])) == 20


def test_a_recorded_search_replays_without_a_device() -> None:
    subject = assignment(TARGET, trials=15)
    plan, archive = run(steady_times(), subject)
    again = replay(subject, archive.trials, TARGET)
    assert again.cover == plan.cover
    assert [k.schedule for k in again.kernels] == [k.schedule for k in plan.kernels]


def test_a_whole_job_on_this_machine(local_device: LocalDevice) -> None:
    archive = MemoryArchive()
    subject = assignment(local_device.target, seconds=60.0, trials=6)
    plan = Session(subject, local_device, archive).run()
    assert plan.key == subject.key
    assert plan.summary.baseline_us > 0
    assert all(isinstance(t.result, Measurement) for t in archive.trials if t.group != "cover")


CRASH, HANG, WRONG = "crash", "hang", "wrong"


def sabotage(how: str) -> Callable[[str, str], str]:
    """Candidates with the numbers 0, 1 and 2 of every nest go wrong."""
    broken = {
        CRASH: "__builtin_trap();",
        HANG: "for (volatile int i = 1; i;) {}",
        WRONG: "return 0;",
    }[how]

    def change(symbol: str, text: str) -> str:
        head = f"int {symbol}(const gaf_kernel_args *args) {{"
        assert head in text
        return text.replace(head, head + broken) if symbol.endswith("_1") else text

    return change


@pytest.mark.parametrize(
    ("how", "code"),
    [(CRASH, "kernel-crash"), (HANG, "kernel-hang"), (WRONG, "wrong-result")],
)
def test_a_planted_fault_costs_one_trial_with_its_reason(
    local_device: LocalDevice, how: str, code: str
) -> None:
    template = Sabotaged(pointwise(host_target()), sabotage(how))
    archive = MemoryArchive()
    subject = assignment(local_device.target, trials=6)
    plan = Session(subject, local_device, archive, templates=[template]).run()
    failed = [t for t in archive.trials if isinstance(t.result, Failure)]
    assert {t.result.code for t in failed if isinstance(t.result, Failure)} == {code}
    assert {t.number for t in failed} == {1}
    assert any(isinstance(t.result, Measurement) for t in archive.trials if t.group != "cover")
    assert plan.summary.failures == len(failed)
