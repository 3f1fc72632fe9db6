"""Names of devices, as callers write them, and the targets that they stand for.

cpu                 this machine
ascend-sim:910b3    an NPU chip on the bundled simulator
ascend:0            an NPU of this machine, through CANN
"""

from __future__ import annotations

import os
import re

from kernel_gen.ascend.chips import chip_names, load_chip
from kernel_gen.codegen.ascend.launch import npu_target
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.runtime.host import host_target

CPU = "cpu"
_SIMULATED = f"{DeviceKind.ASCEND_SIM}:"
_CANN_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")


def checked_device(name: object) -> str:
    """The name, if it is one; says nothing about whether the device is there.

    Raises InvalidInput for an unknown one, Unavailable for an NPU, which needs CANN.
    """
    if name == CPU:
        return CPU
    if isinstance(name, str) and name.startswith(_SIMULATED):
        load_chip(name.removeprefix(_SIMULATED))
        return name
    if isinstance(name, str) and re.fullmatch(r"ascend:[0-9]{1,4}", name):
        raise Unavailable(f"device {name!r}: {missing_cann()}")
    raise InvalidInput(
        f"device {str(name)[:80]!r} is unknown; expected one of {', '.join(device_names())}"
    )


def device_names() -> tuple[str, ...]:
    """The devices that need nothing but this machine."""
    return (CPU, *(f"{_SIMULATED}{chip}" for chip in chip_names()))


def device_target(name: str) -> Target:
    """The target of a device; raises as `checked_device` does."""
    if checked_device(name) == CPU:
        return host_target()
    return npu_target(name.removeprefix(_SIMULATED))


def is_simulated(target: Target) -> bool:
    """Whether times on this target are simulated."""
    return target.kind is DeviceKind.ASCEND_SIM


def missing_cann() -> str:
    """Why no NPU can be used here, and what can be used in its place."""
    home = next((os.environ[name] for name in _CANN_VARIABLES if os.environ.get(name)), None)
    found = f"CANN is at {home}, but this version" if home else "no CANN here, and this version"
    return f"{found} does not drive NPUs; use the simulator, {_SIMULATED}910b3"
