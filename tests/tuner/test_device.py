"""One conformance suite over every `Device`."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest
import tuner_kernels as kernels
from tuner_kernels import kernel
from tuner_nests import scale_nest, strided_nest

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.ir.types import ValueDomain
from kernel_gen.records import Failure, Measurement, Stage
from kernel_gen.schedule.schedule import Schedule
from tuner.device import Device
from tuner.messages import KernelTask, NestCheck
from tuner.protocol import Limits

FAST = Limits(max_samples=5, max_seconds=0.02)
CHECK = NestCheck("scale", scale_nest(), (ValueDomain(), ValueDomain()))


@pytest.fixture(
    params=["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.xdist_group("ray")])]
)
def device(request: pytest.FixtureRequest) -> Device:
    found: Device = request.getfixturevalue(f"{request.param}_device")
    return found


def task(body: str, entry: str = "candidate", timeout_s: float = 5.0) -> KernelTask:
    return KernelTask(CHECK, kernel(body, entry), limits=FAST, timeout_s=timeout_s)


def outcomes(device: Device, tasks: Sequence[KernelTask]) -> list[Measurement | Failure]:
    return [result.result for result in device.measure(tasks)]


def failure(device: Device, body: str, timeout_s: float = 5.0) -> Failure:
    (found,) = outcomes(device, [task(body, timeout_s=timeout_s)])
    assert isinstance(found, Failure)
    return found


def test_a_right_kernel_is_measured(device: Device) -> None:
    (result,) = device.measure([task(kernels.RIGHT)])
    assert isinstance(result.result, Measurement)
    assert 0 < result.result.median_us < 1e5
    assert result.result.protocol.threads == device.target.cores
    assert result.build_seconds > 0


@pytest.mark.parametrize(
    ("body", "stage", "code"),
    [
        (kernels.WRONG, Stage.CHECK, "wrong-result"),
        (kernels.INCOMPLETE, Stage.CHECK, "wrong-result"),
        (kernels.OVERRUN, Stage.CHECK, "wrong-result"),
        (kernels.WRITES_INPUT, Stage.CHECK, "kernel-crash"),
        (kernels.CRASH, Stage.CHECK, "kernel-crash"),
        (kernels.ABORT, Stage.CHECK, "kernel-crash"),
        (kernels.STATUS, Stage.CHECK, "kernel-status"),
        (kernels.BROKEN, Stage.BUILD, "compile-error"),
    ],
)
def test_each_fault_is_a_failure_with_its_reason(
    device: Device, body: str, stage: Stage, code: str
) -> None:
    found = failure(device, body)
    assert (found.stage, found.code) == (stage, code)
    assert found.message


@pytest.mark.parametrize("in_strides", [(1, 6), (9, 1), (0, 1), (5, 1)])
@pytest.mark.parametrize("out_strides", [None, (1, 6)])
def test_operands_have_the_strides_of_the_program(
    device: Device, in_strides: tuple[int, ...], out_strides: tuple[int, ...] | None
) -> None:
    nest = strided_nest(in_strides, out_strides)
    (template, *_) = (t for t in templates(device.target) if t.refuse(nest, device.target) is None)
    (point, *_) = template.space(nest, device.target).seeds
    schedule = template.schedule(nest, device.target, dict(point))
    assert isinstance(schedule, Schedule)
    source = template.generate(nest, device.target, schedule, "candidate")
    check = NestCheck(f"strided{in_strides}{out_strides}", nest, (ValueDomain(), ValueDomain()))
    (result,) = device.measure([KernelTask(check, source, limits=FAST, timeout_s=5.0)])
    assert isinstance(result.result, Measurement), result.result


def test_a_hanging_kernel_costs_its_time_out(device: Device) -> None:
    found = failure(device, kernels.HANG, timeout_s=0.2)
    assert (found.stage, found.code) == (Stage.TIMEOUT, "kernel-hang")


def test_one_bad_candidate_spoils_no_other_of_its_batch(device: Device) -> None:
    bodies = [kernels.RIGHT, kernels.CRASH, kernels.BROKEN, kernels.WRONG, kernels.RIGHT]
    tasks = [task(body, f"candidate{i}") for i, body in enumerate(bodies)]
    tasks.insert(3, task(kernels.HANG, "hanging", timeout_s=0.2))
    kinds = [type(found) for found in outcomes(device, tasks)]
    assert kinds == [Measurement, Failure, Failure, Failure, Failure, Measurement]


def test_a_clearly_slower_candidate_is_given_up(device: Device) -> None:
    given_up = KernelTask(CHECK, kernel(kernels.RIGHT), incumbent_us=1e-4, limits=FAST)
    (found,) = outcomes(device, [given_up])
    assert isinstance(found, Measurement)
    assert len(found.samples_us) == FAST.give_up_samples


def test_a_killed_child_is_replaced(device: Device) -> None:
    outcomes(device, [task(kernels.RIGHT)])
    pid = device.child_pid  # type: ignore[attr-defined]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    results = outcomes(device, [task(kernels.RIGHT), task(kernels.RIGHT)])
    assert isinstance(results[-1], Measurement)


def test_an_empty_batch_is_fine(device: Device) -> None:
    assert device.measure([]) == []
