"""One conformance suite over every `Device`: here, in Ray, an NPU on the simulator, and a real one
through CANN, for which a stub stands."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace

import pytest
import tuner_kernels
import tuner_npu_kernels
from tuner_nests import scale_nest, strided_nest

from kernel_gen.codegen.registry import templates
from kernel_gen.ir.target import DeviceKind
from kernel_gen.ir.types import ValueDomain
from kernel_gen.records import Failure, Measurement, Stage
from kernel_gen.schedule.schedule import Schedule
from tuner.child.messages import KernelTask, NestCheck
from tuner.child.protocol import Limits
from tuner.devices.device import Device

FAST = Limits(max_samples=5, max_seconds=0.02)
CHECK = NestCheck("scale", scale_nest(), (ValueDomain(), ValueDomain()))
IN_RAY = [pytest.mark.ray, pytest.mark.xdist_group("ray")]
CPU = ["local", pytest.param("ray", marks=IN_RAY)]
SIMULATED = [pytest.param("simulated", marks=pytest.mark.xdist_group("simulated"))]
NPU = [pytest.param("npu", marks=pytest.mark.xdist_group("simulated"))]


@pytest.fixture(params=[*CPU, *SIMULATED, *NPU])
def device(request: pytest.FixtureRequest) -> Device:
    found: Device = request.getfixturevalue(f"{request.param}_device")
    return found


def is_simulated(device: Device) -> bool:
    return device.target.kind is DeviceKind.ASCEND_SIM


def task(
    device: Device, name: str, entry: str = "candidate", timeout_s: float = 30.0
) -> KernelTask:
    """The hand-written kernel of this name for the device."""
    is_cpu = device.target.kind is DeviceKind.CPU
    kernels = tuner_kernels if is_cpu else tuner_npu_kernels
    source = kernels.kernel(getattr(kernels, name), entry)
    return KernelTask(CHECK, source, limits=FAST, timeout_s=timeout_s)


def outcomes(device: Device, tasks: Sequence[KernelTask]) -> list[Measurement | Failure]:
    return [result.result for result in device.measure(tasks)]


def failure(device: Device, name: str, timeout_s: float = 30.0) -> Failure:
    (found,) = outcomes(device, [task(device, name, timeout_s=timeout_s)])
    assert isinstance(found, Failure)
    return found


def test_a_right_kernel_is_measured(device: Device) -> None:
    (result,) = device.measure([task(device, "RIGHT")])
    assert isinstance(result.result, Measurement)
    assert 0 < result.result.median_us < 1e5
    assert result.result.protocol.threads == device.target.cores
    assert result.result.protocol.simulated == is_simulated(device)
    assert (result.result.bounding_pipe is not None) == is_simulated(device)
    assert result.build_seconds > 0


@pytest.mark.parametrize(
    ("name", "stage", "code"),
    [
        ("WRONG", Stage.CHECK, "wrong-result"),
        ("INCOMPLETE", Stage.CHECK, "wrong-result"),
        ("CRASH", Stage.CHECK, "kernel-crash"),
        ("ABORT", Stage.CHECK, "kernel-crash"),
        ("BROKEN", Stage.BUILD, "compile-error"),
    ],
)
def test_each_fault_is_a_failure_with_its_reason(
    device: Device, name: str, stage: Stage, code: str
) -> None:
    found = failure(device, name)
    assert (found.stage, found.code) == (stage, code)
    assert found.message


@pytest.mark.parametrize("device", CPU, indirect=True)
def test_a_kernel_must_be_right_over_its_input_where_it_says_so(device: Device) -> None:
    """Right between two arrays, wrong where they are one: it reads what it has written."""
    first = "for (gaf_i64 i = 0; i < n; i++) out[i] = 0;"
    then = "for (gaf_i64 i = 0; i < n; i++) out[i] += 2 * x[i];"
    plain, claims = (
        replace(tuner_kernels.kernel(first + then, entry), in_place=pairs)
        for entry, pairs in (("plain", ()), ("claims", ((0, 1),)))
    )
    tasks = [replace(task(device, "RIGHT"), source=source) for source in (plain, claims)]
    right, wrong = (result.result for result in device.measure(tasks))
    assert isinstance(right, Measurement)
    assert isinstance(wrong, Failure)
    assert wrong.code == "wrong-result"


@pytest.mark.parametrize("device", CPU, indirect=True)
@pytest.mark.parametrize(
    ("name", "code"),
    [("OVERRUN", "wrong-result"), ("WRITES_INPUT", "kernel-crash"), ("STATUS", "kernel-status")],
)
def test_what_only_memory_and_status_show(device: Device, name: str, code: str) -> None:
    found = failure(device, name)
    assert (found.stage, found.code) == (Stage.CHECK, code)


@pytest.mark.parametrize("device", NPU, indirect=True)
@pytest.mark.parametrize(
    ("name", "said"),
    [("OVERRUN", "around operand 1"), ("WRITES_INPUT", "operand 0, an input"), ("FAR", "507015")],
)
def test_what_only_the_memory_and_status_of_an_npu_show(
    device: Device, name: str, said: str
) -> None:
    found = failure(device, name)
    assert (found.stage, found.code) == (
        Stage.CHECK,
        "device-fault" if name == "FAR" else "wrong-result",
    )
    assert said in found.message
    assert isinstance(outcomes(device, [task(device, "RIGHT")])[0], Measurement)


@pytest.mark.parametrize("device", SIMULATED, indirect=True)
@pytest.mark.parametrize(
    ("name", "code"),
    [("OVERRUN", "gm-out-of-bounds"), ("WRITES_INPUT", "gm-input-written"), ("RACE", "race")],
)
def test_a_broken_rule_of_the_chip_fails_with_its_code(
    device: Device, name: str, code: str
) -> None:
    found = failure(device, name)
    assert (found.stage, found.code) == (Stage.CHECK, code)
    assert "candidate.cpp" in found.message


@pytest.mark.parametrize("device", CPU, indirect=True)  # NPU: tests/codegen/ascend
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
    found = failure(device, "HANG", timeout_s=0.2)
    assert (found.stage, found.code) == (Stage.TIMEOUT, "kernel-hang")


def test_one_bad_candidate_spoils_no_other_of_its_batch(device: Device) -> None:
    names = ["RIGHT", "CRASH", "BROKEN", "WRONG", "RIGHT"]
    tasks = [task(device, name, f"candidate{i}") for i, name in enumerate(names)]
    tasks.insert(3, task(device, "HANG", "hanging", timeout_s=0.2))
    found = outcomes(device, tasks)
    kinds = [type(outcome) for outcome in found]
    assert kinds == [Measurement, Failure, Failure, Failure, Failure, Measurement], found


@pytest.mark.parametrize("device", CPU[:1], indirect=True)
def test_an_overrun_is_not_held_against_the_next_candidate(device: Device) -> None:
    overrun, right = (task(device, name, f"after{name}") for name in ("OVERRUN", "RIGHT"))
    first, second = outcomes(device, [overrun, right])
    assert isinstance(first, Failure)
    assert isinstance(second, Measurement), second


@pytest.mark.parametrize("device", CPU, indirect=True)
def test_a_clearly_slower_candidate_is_given_up(device: Device) -> None:
    given_up = replace(task(device, "RIGHT"), incumbent_us=1e-4)
    (found,) = outcomes(device, [given_up])
    assert isinstance(found, Measurement)
    assert len(found.samples_us) == FAST.give_up_samples


@pytest.mark.parametrize("device", CPU[:1], indirect=True)
def test_a_candidate_whose_first_calls_were_held_up_is_timed(device: Device) -> None:
    (found,) = outcomes(device, [replace(task(device, "SLOW_START"), incumbent_us=1.0)])
    assert isinstance(found, Measurement)
    assert found.median_us < 1000, found


def test_a_killed_child_is_replaced(device: Device) -> None:
    outcomes(device, [task(device, "RIGHT")])
    pid = device.child_pid  # type: ignore[attr-defined]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    results = outcomes(device, [task(device, "RIGHT"), task(device, "RIGHT")])
    assert isinstance(results[-1], Measurement)


@pytest.mark.ray
@pytest.mark.xdist_group("ray")
def test_a_simulated_npu_is_a_device_of_ray(ray_session: None) -> None:
    from tuner.devices.ray_device import RayDevice

    device = RayDevice("ascend-sim:910b3")
    try:
        assert is_simulated(device)
        right, broken = outcomes(device, [task(device, name, name) for name in ("RIGHT", "RACE")])
    finally:
        device.close()
    assert isinstance(right, Measurement)
    assert isinstance(broken, Failure)
    assert broken.code == "race"


def test_an_empty_batch_is_fine(device: Device) -> None:
    assert device.measure([]) == []
