"""Chips of NPUs as targets."""

from __future__ import annotations

from kernel_gen.ascend.chips import load_chip
from kernel_gen.ir.target import DeviceKind, Target


def npu_target(chip: str, kind: DeviceKind = DeviceKind.ASCEND_SIM) -> Target:
    """The target of a chip of `kernel_gen/ascend/chips`; raises InvalidInput for another name."""
    found = load_chip(chip)
    return Target(
        kind, found.name, "ascendc", cores=found.vector_cores, vector_bytes=256,
        l1_bytes=found.ub_bytes, l2_bytes=found.l1_bytes, l3_bytes=found.l2_bytes,
    )  # fmt: skip
