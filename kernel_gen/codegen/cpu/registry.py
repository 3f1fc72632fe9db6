"""Which templates there are for a CPU, in the order in which candidates try them."""

from __future__ import annotations

from kernel_gen.codegen.cpu.attention import AttentionTemplate
from kernel_gen.codegen.cpu.loops import LoopsTemplate
from kernel_gen.codegen.cpu.matmul import MatmulTemplate
from kernel_gen.codegen.cpu.pointwise import Pointwise
from kernel_gen.codegen.cpu.reductions.row import RowTemplate
from kernel_gen.codegen.template import Template
from kernel_gen.ir.target import Target


def templates(target: Target) -> tuple[Template, ...]:
    """All templates for `target`: specialised ones first, the one that takes any nest last."""
    return (
        AttentionTemplate(),
        MatmulTemplate(),
        Pointwise(),
        RowTemplate("row", columns=False),
        RowTemplate("reduce", columns=True),
        LoopsTemplate(),
    )
