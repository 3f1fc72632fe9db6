"""Names of devices, as callers write them, and the targets that they stand for.

cpu                 this machine
ascend-sim:910b3    an NPU chip on the bundled simulator
ascend:0            an NPU of this machine, through CANN
"""

from __future__ import annotations

import re

from kernel_gen.ascend.chips import chip_names, load_chip
from kernel_gen.codegen.ascend.target import npu_target
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.runtime.ascend.cann import chip_of, find_toolkit
from kernel_gen.runtime.host import host_target

CPU = "cpu"
_SIMULATED = f"{DeviceKind.ASCEND_SIM}:"
_REAL = re.compile(rf"{DeviceKind.ASCEND}:([0-9]{{1,4}})\Z")


def checked_device(name: object) -> str:
    """The name, if it is one; of an NPU it says that CANN is there, not that the NPU is.

    Raises InvalidInput for an unknown one, Unavailable for an NPU without CANN.
    """
    if name == CPU:
        return CPU
    if isinstance(name, str) and name.startswith(_SIMULATED):
        load_chip(name.removeprefix(_SIMULATED))
        return name
    if isinstance(name, str) and _REAL.match(name):
        try:
            find_toolkit()
        except Unavailable as error:
            raise Unavailable(f"device {name!r}: {error}") from None
        return name
    raise InvalidInput(
        f"device {str(name)[:80]!r} is unknown; expected one of {', '.join(device_names())}"
    )


def device_names() -> tuple[str, ...]:
    """The devices that need nothing but this machine."""
    return (CPU, *(f"{_SIMULATED}{chip}" for chip in chip_names()))


def device_target(name: str) -> Target:
    """The target of a device; raises as `checked_device` does, and Unavailable where there is no
    such NPU."""
    if checked_device(name) == CPU:
        return host_target()
    number = npu_number(name)
    if number is None:
        return npu_target(name.removeprefix(_SIMULATED))
    return npu_target(chip_of(find_toolkit(), number), DeviceKind.ASCEND)


def npu_number(name: str) -> int | None:
    """Which NPU of this machine a device's name stands for; None for other devices."""
    found = _REAL.match(name)
    return None if found is None else int(found[1])


def is_simulated(target: Target) -> bool:
    """Whether times on this target are simulated."""
    return target.kind is DeviceKind.ASCEND_SIM
