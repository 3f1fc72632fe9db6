"""Which templates there are for a CPU, in the order in which candidates try them."""

from __future__ import annotations

from kernel_gen.codegen.cpu.matmul import MatmulTemplate
from kernel_gen.codegen.cpu.pointwise import Pointwise
from kernel_gen.codegen.template import Template
from kernel_gen.ir.target import Target


def templates(target: Target) -> tuple[Template, ...]:
    """All templates for `target`."""
    return (Pointwise(), MatmulTemplate())
