"""Opening a device by its name, and the resource that stands for it in Ray."""

from __future__ import annotations

from kernel_gen.runtime.ascend.cann import find_toolkit
from kernel_gen.runtime.ascend.names import npu_number
from kernel_gen.runtime.device_names import CPU, device_target
from tuner.devices.ascend_backend import CannBackend
from tuner.devices.ascend_device import AscendDevice
from tuner.devices.device import LocalDevice
from tuner.devices.ray_runtime import CPU_RESOURCE, NPU_RESOURCE


def open_device(name: str) -> LocalDevice | AscendDevice:
    """The device in this process. Raises InvalidInput for an unknown one, Unavailable where it is
    not here."""
    target = device_target(name)
    if name == CPU:
        return LocalDevice(target)
    number = npu_number(name)
    backend = None if number is None else CannBackend(find_toolkit(), number)
    return AscendDevice(target, backend=backend)


def resource_of(name: str) -> str:
    """What an actor of the device holds in Ray, so that two of them never measure at once."""
    return CPU_RESOURCE if name == CPU else NPU_RESOURCE
