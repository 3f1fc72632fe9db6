"""Which templates there are for a target, whatever its kind."""

from __future__ import annotations

from kernel_gen.codegen.ascend import registry as ascend
from kernel_gen.codegen.cpu import registry as cpu
from kernel_gen.codegen.template import Template
from kernel_gen.ir.target import DeviceKind, Target


def templates(target: Target) -> tuple[Template, ...]:
    """All templates for `target`, in the order in which candidates try them."""
    if target.kind is DeviceKind.CPU:
        return cpu.templates(target)
    return ascend.templates(target)
