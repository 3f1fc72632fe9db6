from __future__ import annotations

import os
import signal
import time
from importlib import import_module
from typing import TYPE_CHECKING

import psutil
import pytest
import tuner_kernels as kernels
from tuner_kernels import kernel
from tuner_nests import scale_nest

from kernel_gen.errors import Unavailable
from kernel_gen.ir.types import ValueDomain
from kernel_gen.records import Measurement
from tuner.child.messages import KernelTask, NestCheck
from tuner.child.protocol import Limits

if TYPE_CHECKING:
    from tuner.devices.ray_device import RayDevice

pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray")]
CHECK = NestCheck("scale", scale_nest(), (ValueDomain(), ValueDomain()))


def works(device: RayDevice) -> bool:
    task = KernelTask(CHECK, kernel(kernels.RIGHT), limits=Limits(max_seconds=0.02))
    return isinstance(device.measure([task])[0].result, Measurement)


def test_a_killed_actor_is_replaced_and_takes_its_children_along(ray_device: RayDevice) -> None:
    assert works(ray_device)
    actor, child = ray_device.actor_pid, ray_device.child_pid
    assert child is not None
    os.kill(actor, signal.SIGKILL)
    assert works(ray_device)
    assert ray_device.actor_pid != actor
    deadline = time.monotonic() + 60
    while psutil.pid_exists(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(child)


class Stopped(Exception):
    pass


def stop() -> None:
    raise Stopped


def test_a_call_that_lasts_is_given_up_with_its_actor_when_the_job_is(
    ray_device: RayDevice,
) -> None:
    assert works(ray_device)
    pids = [ray_device.actor_pid, ray_device.child_pid]
    ray_device.watch(stop)
    with pytest.raises(Stopped):
        ray_device.measure([KernelTask(CHECK, kernel(kernels.HANG), timeout_s=600.0)])
    ray_device.watch(lambda: None)
    assert works(ray_device)
    assert ray_device.actor_pid not in pids
    deadline = time.monotonic() + 60
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(psutil.pid_exists, pids))


def test_the_actor_runs_at_the_priority_of_its_search(ray_device: RayDevice) -> None:
    assert psutil.Process(ray_device.actor_pid).nice() == psutil.Process().nice()


def test_ray_leaves_the_signal_handlers_alone(ray_device: RayDevice) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ray_starts_only_what_one_machine_needs(ray_device: RayDevice) -> None:
    commands = [" ".join(p.cmdline()) for p in psutil.Process().children(recursive=True)]
    assert any("raylet" in command for command in commands)
    for needless in ("autoscaler", "log_monitor.py", "dashboard/", "DashboardAgent", "EnvAgent"):
        assert not [command for command in commands if needless in command]


def test_what_the_device_lacks_is_said_in_its_own_words(ray_device: RayDevice) -> None:
    import ray

    @ray.remote(num_cpus=0)
    def without_compiler() -> None:
        from kernel_gen.errors import Unavailable

        raise Unavailable("no C++ compiler: install g++")

    with pytest.raises(Unavailable, match=r"^no C\+\+ compiler: install g\+\+$"):
        ray_device._ask(lambda actor: without_compiler.remote())


def test_a_lean_start_leaves_ray_as_it_was() -> None:
    from tuner.devices.ray_lean import lean_start

    places = [
        (import_module(f"ray._private.{module}"), name)
        for module, name in (
            ("parameter", "RayParams"),
            ("services", "start_api_server"),
            ("services", "get_node"),
            ("services", "start_ray_process"),
        )
    ]
    before = [getattr(module, name) for module, name in places]
    with lean_start():
        inside = [getattr(module, name) for module, name in places]
    assert all(new is not old for new, old in zip(inside, before, strict=True))
    assert [getattr(module, name) for module, name in places] == before
