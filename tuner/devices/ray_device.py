"""A device behind a Ray actor. The actor holds the device as a resource, so that two drivers never
measure on it at once; candidates run in a child of the actor's process.

Actors have `max_restarts=0`: when one is lost the driver makes another and repeats the batch once.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError, RayTaskError

from kernel_gen.errors import Unavailable
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Measurement
from kernel_gen.runtime.device_names import CPU
from tuner.child.contest import ContestResult, ContestTask, GraphTask
from tuner.child.messages import KernelTask, TaskResult
from tuner.devices.ascend_device import AscendDevice
from tuner.devices.device import LocalDevice
from tuner.devices.opening import open_device, resource_of

log = logging.getLogger(__name__)
_LOST = (RayActorError, ActorDiedError, ActorUnavailableError)
_START_TIMEOUT_S = 60.0
_BUILD_TIMEOUT_S = 300.0  # the simulator is built once per machine
_ASK_SECONDS = 0.5  # between two questions whether to go on
T = TypeVar("T")


class _DeviceActor:
    """Lives in a Ray worker and owns a device, made at the first use: what an actor's constructor
    raises reaches nobody as an exception of its own type."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _device(self) -> LocalDevice | AscendDevice:
        return open_device(self._name)

    def target(self) -> Target:
        return self._device.target

    def measure(self, tasks: Sequence[KernelTask], seconds: float | None) -> list[TaskResult]:
        return self._device.measure(tasks, seconds)

    def time_graphs(self, tasks: Sequence[GraphTask]) -> list[Measurement | Failure]:
        return self._device.time_graphs(tasks)

    def contest(self, task: ContestTask) -> ContestResult:
        return self._device.contest(task)

    def child_pid(self) -> int | None:
        return self._device.child_pid

    def pid(self) -> int:
        return os.getpid()

    def close(self) -> None:
        self._device.close()


class RayDevice:
    """`Device` over an actor that opens the device `name`. Needs `ray_runtime`; raises
    Unavailable if no node offers the device's resource within a minute, or `resource` instead.
    `check_stop` is asked from the start, see `Device.watch`."""

    def __init__(
        self,
        name: str = CPU,
        resource: str | None = None,
        check_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._name, self._resource = name, resource or resource_of(name)
        self._check_stop = check_stop
        self._actor: Any = self._create()
        limit = _start_timeout_s(name)
        self._target: Target = self._ask(lambda actor: actor.target.remote(), limit)

    @property
    def target(self) -> Target:
        return self._target

    @property
    def child_pid(self) -> int | None:
        """Pid of the process candidates run in, if it lives."""
        pid: int | None = self._ask(lambda actor: actor.child_pid.remote())
        return pid

    @property
    def actor_pid(self) -> int:
        """Pid of the actor's process, as seen on its node."""
        pid: int = self._ask(lambda actor: actor.pid.remote())
        return pid

    def measure(
        self, tasks: Sequence[KernelTask], seconds: float | None = None
    ) -> list[TaskResult]:
        batch = list(tasks)
        results: list[TaskResult] = self._ask(lambda actor: actor.measure.remote(batch, seconds))
        return results

    def time_graphs(self, tasks: Sequence[GraphTask]) -> list[Measurement | Failure]:
        batch = list(tasks)
        times: list[Measurement | Failure] = self._ask(
            lambda actor: actor.time_graphs.remote(batch)
        )
        return times

    def contest(self, task: ContestTask) -> ContestResult:
        result: ContestResult = self._ask(lambda actor: actor.contest.remote(task))
        return result

    def watch(self, check_stop: Callable[[], None]) -> None:
        self._check_stop = check_stop

    def close(self) -> None:
        if self._actor is None:
            return  # given up, and with it its children
        try:
            ray.get(self._actor.close.remote(), timeout=10)
        except (*_LOST, ray.exceptions.GetTimeoutError) as error:
            # Killing it below ends its children, too.
            log.info("the device actor is gone or stuck: %s", error)
        ray.kill(self._actor)

    def _create(self) -> Any:
        remote = ray.remote(max_restarts=0, num_cpus=0, resources={self._resource: 1})(_DeviceActor)
        return remote.remote(self._name)

    def _ask(self, call: Callable[[Any], Any], timeout_s: float | None = None) -> Any:
        """The actor's answer; an actor that is lost is replaced once."""
        if self._actor is None:
            self._actor = self._create()
        try:
            return self._answer(call(self._actor), timeout_s)
        except ray.exceptions.GetTimeoutError:
            raise Unavailable(f"no worker offers {self._resource} within {timeout_s} s") from None
        except _LOST:
            self._actor = self._create()
        try:
            return self._answer(call(self._actor), timeout_s)
        except _LOST as error:
            raise Unavailable(f"the device actor was lost twice: {error}") from error

    def _answer(self, reference: Any, timeout_s: float | None) -> Any:
        """What a call gave; Unavailable as it was raised there, without Ray's traceback. An actor
        whose work is given up is killed: it hears nothing before it is done."""
        end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while not ray.wait([reference], timeout=_ASK_SECONDS)[0] and time.monotonic() < end:
            try:
                self._check_stop()
            except BaseException:
                actor, self._actor = self._actor, None
                ray.kill(actor)
                raise
        try:
            return ray.get(reference, timeout=None if timeout_s is None else 0)
        except RayTaskError as error:
            if isinstance(error.cause, Unavailable):
                raise Unavailable(str(error.cause)) from error
            raise


def _start_timeout_s(name: str) -> float:
    return _START_TIMEOUT_S if name == CPU else _START_TIMEOUT_S + _BUILD_TIMEOUT_S
