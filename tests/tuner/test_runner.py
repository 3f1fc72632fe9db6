import os
import signal
import tempfile
from pathlib import Path

import pytest
import tuner_kernels as kernels
from tuner_kernels import kernel
from tuner_nests import scale_nest

from kernel_gen.ir.types import ValueDomain
from kernel_gen.lifetime.scratch import PREFIX
from kernel_gen.records import Measurement
from tuner.child.messages import KernelTask, NestCheck
from tuner.child.protocol import Limits
from tuner.devices.device import LocalDevice
from tuner.devices.runner import Runner


def test_scratch_goes_with_the_runner() -> None:
    with Runner() as runner:
        assert runner.scratch.is_dir()
    assert not runner.scratch.exists()


def test_scratch_of_dead_processes_is_removed() -> None:
    stale = Path(tempfile.mkdtemp(prefix=f"{PREFIX}device-"))
    with Runner():
        assert not stale.exists()


def measured(device: LocalDevice, key: str) -> bool:
    check = NestCheck(key, scale_nest(), (ValueDomain(), ValueDomain()))
    limits = Limits(max_samples=5, max_seconds=0.02)
    (result,) = device.measure([KernelTask(check, kernel(kernels.RIGHT), limits=limits)])
    return isinstance(result.result, Measurement)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("victim", ["child", "zygote"])
def test_a_process_killed_from_outside_costs_one_kernel_at_most(victim: str) -> None:
    device = LocalDevice()
    try:
        assert measured(device, "first")
        child = device.child_pid
        assert child is not None
        os.kill(child if victim == "child" else parent_of(child), signal.SIGKILL)
        # One fails if the child dies after it had its operands; which one depends on the scheduler.
        after = [measured(device, key) for key in ("second", "third", "fourth", "first")]
        assert after.count(False) <= 1
    finally:
        device.close()


class Stopped(Exception):
    pass


def stop() -> None:
    raise Stopped


def test_a_kernel_that_lasts_is_given_up_when_the_job_is() -> None:
    check = NestCheck("scale", scale_nest(), (ValueDomain(), ValueDomain()))
    device = LocalDevice()
    try:
        device.watch(stop)
        with pytest.raises(Stopped):
            device.measure([KernelTask(check, kernel(kernels.HANG), timeout_s=600.0)])
        assert device.child_pid is None
        device.watch(lambda: None)
        assert measured(device, "after")
    finally:
        device.close()
