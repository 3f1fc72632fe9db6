"""A kernel of one or more phases: emitters, scratch, barriers, source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernel_gen.codegen.cpu.frame import kernel_source
from kernel_gen.codegen.cpu.reductions.phaseloops import emit_phase
from kernel_gen.codegen.cpu.reductions.rowconfig import RowConfig
from kernel_gen.codegen.cpu.reductions.rows import RowEmitter
from kernel_gen.codegen.cpu.reductions.staging import StagedPhase, StagedPlan
from kernel_gen.codegen.cpu.scratch import Scratch
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, Lanes
from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.codegen.source import KernelSource

Configure = Callable[[StagedPhase], tuple[RowConfig, Lanes]]


def staged_kernel(
    plan: StagedPlan,
    base: FlatNest,
    configure: Configure,
    symbol: str,
    *,
    parallel: bool,
    stream: frozenset[int] = frozenset(),
) -> KernelSource:
    """The source of all phases; `configure` decides for each of them."""
    unit, scratch = Unit(), Scratch()
    root = Emitter(base, unit, Lanes(4)).root()
    for k, buffer in enumerate(plan.extra):
        number, c = len(base.buffers) + k, SCALAR_C[buffer.type.dtype]
        at = scratch.shared(f"result{number}", buffer.type.nbytes)
        root.add(f"{c} *const b{number} = ({c} *)(common + {at});")
    names = 0
    for position, staged in enumerate(plan.phases):
        config, lanes = configure(staged)
        emitter = Emitter(staged.nest, unit, lanes, stream, first_name=names)
        if position:
            root.add("GAF_BARRIER")
        body = root.open("{")
        emit_phase(RowEmitter(emitter, staged.phase, config, scratch, f"phase{position}"), body)
        body.close()
        names = emitter.names
    scratch.declare(unit, root, always=len(plan.phases) > 1)
    source = kernel_source(unit, root, symbol, parallel=parallel)
    return replace(source, scratch_bytes=scratch.private_bytes, shared_bytes=scratch.shared_bytes)
