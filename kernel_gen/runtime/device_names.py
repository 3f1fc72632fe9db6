"""Names of devices, as callers write them, and the targets that they stand for.

cpu                 this machine
ascend-sim:910b3    an NPU chip on the bundled simulator
ascend:0            an NPU of this machine, through CANN

What is known of NPUs is loaded where one is named.
"""

from __future__ import annotations

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.runtime.host import host_target

CPU = "cpu"


def checked_device(name: object) -> str:
    """The name, if it is one; of an NPU it says that CANN is there, not that the NPU is.

    Raises InvalidInput for an unknown one, Unavailable for an NPU without CANN.
    """
    if name == CPU:
        return CPU
    from kernel_gen.runtime.ascend.names import is_npu

    if isinstance(name, str) and is_npu(name):
        return name
    raise InvalidInput(
        f"device {str(name)[:80]!r} is unknown; expected one of {', '.join(device_names())}"
    )


def device_names() -> tuple[str, ...]:
    """The devices that need nothing but this machine."""
    from kernel_gen.runtime.ascend.names import simulated_npus

    return (CPU, *simulated_npus())


def device_target(name: str) -> Target:
    """The target of a device; raises as `checked_device` does, and Unavailable where there is no
    such NPU."""
    if checked_device(name) == CPU:
        return host_target()
    from kernel_gen.runtime.ascend.names import target_of

    return target_of(name)


def is_simulated(target: Target) -> bool:
    """Whether times on this target are simulated."""
    return target.kind is DeviceKind.ASCEND_SIM
