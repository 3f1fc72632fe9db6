"""Names of NPUs: `ascend-sim:<chip>` on the simulator, `ascend:<number>` through CANN."""

from __future__ import annotations

import re

from kernel_gen.ascend.chips import chip_names, load_chip
from kernel_gen.codegen.ascend.target import npu_target
from kernel_gen.errors import Unavailable
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.runtime.ascend.cann import chip_of, find_toolkit

_SIMULATED = f"{DeviceKind.ASCEND_SIM}:"
_REAL = re.compile(rf"{DeviceKind.ASCEND}:([0-9]{{1,4}})\Z")


def is_npu(name: str) -> bool:
    """Whether the name is an NPU's; of a real one it says that CANN is there, not that the NPU is.

    Raises InvalidInput for an unknown chip, Unavailable for a real NPU without CANN.
    """
    if name.startswith(_SIMULATED):
        load_chip(name.removeprefix(_SIMULATED))
        return True
    if npu_number(name) is None:
        return False
    try:
        find_toolkit()
    except Unavailable as error:
        raise Unavailable(f"device {name!r}: {error}") from None
    return True


def simulated_npus() -> tuple[str, ...]:
    """The names of the chips on the simulator."""
    return tuple(f"{_SIMULATED}{chip}" for chip in chip_names())


def target_of(name: str) -> Target:
    """The target of an NPU's name; raises Unavailable where there is no such NPU."""
    number = npu_number(name)
    if number is None:
        return npu_target(name.removeprefix(_SIMULATED))
    return npu_target(chip_of(find_toolkit(), number), DeviceKind.ASCEND)


def npu_number(name: str) -> int | None:
    """Which NPU of this machine a device's name stands for; None for other devices."""
    found = _REAL.match(name)
    return None if found is None else int(found[1])
