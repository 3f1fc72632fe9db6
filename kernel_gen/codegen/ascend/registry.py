"""Which templates there are for an NPU, in the order in which candidates try them."""

from __future__ import annotations

from kernel_gen.codegen.ascend.templates.cube import CubeTemplate
from kernel_gen.codegen.ascend.templates.vector import VectorTemplate
from kernel_gen.codegen.template import Template
from kernel_gen.ir.target import Target


def templates(target: Target) -> tuple[Template, ...]:
    """All templates for `target`."""
    return (
        CubeTemplate(),
        VectorTemplate("elementwise", reduces=False),
        VectorTemplate("reduce", reduces=True),
    )
