"""Values of a row that a stage leaves in scratch for later ones."""

from __future__ import annotations

from kernel_gen.codegen.cpu.reductions.innerspace import InnerSpace
from kernel_gen.codegen.cpu.reductions.keep import Kept
from kernel_gen.codegen.cpu.reductions.rowconfig import RowConfig, RowUnit
from kernel_gen.codegen.cpu.scratch import Scratch
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.flat.phases import Phase
from kernel_gen.ir.dtype import DType

# Copies of a row for stages that lag: loads wait for earlier stores at the same place of a page.
_PAGE, _APART = 4096, 704


class KeptRows:
    """Saves and loads the values that `config` keeps; `label` tells the scratch from other
    phases'."""

    def __init__(
        self,
        emitter: Emitter,
        phase: Phase,
        config: RowConfig,
        space: InnerSpace,
        scratch: Scratch,
        label: str,
    ) -> None:
        self._emitter, self._config, self._space = emitter, config, space
        self._scratch, self._label = scratch, label
        self._copies = len(phase.stages) if config.skew else config.units
        self._lanes = emitter.lanes.count if config.vector in phase.outer else 1

    def reload(self, cell: Scope, unit: RowUnit, number: int) -> None:
        """What stages before `number` have kept for it."""
        for kept in self._config.kept:
            if kept.first < number <= kept.last:
                dtype = self._emitter.nest.statements[kept.statement].dtype
                kind, pointer = self._slot(cell, unit, kept, dtype)
                name = self._emitter.fresh("k")
                cell.add(f"const {kind} {name} = *(const {kind} *){pointer};")
                cell.define(kept.statement, Value(name, dtype, self._is_vector(kept.statement)))

    def save(self, cell: Scope, unit: RowUnit, number: int) -> None:
        """What stage `number` keeps."""
        for kept in self._config.kept:
            if kept.first == number:
                value = self._emitter.value(kept.statement, cell)
                kind, pointer = self._slot(cell, unit, kept, value.dtype)
                cell.add(f"*({kind} *){pointer} = {value.text};")

    def _is_vector(self, statement: int) -> bool:
        return self._config.vector in self._emitter.live_axes[statement]

    def _slot(self, cell: Scope, unit: RowUnit, kept: Kept, dtype: DType) -> tuple[str, str]:
        """Type and address of a kept value: slot, row in flight, position in the padded row."""
        vector = self._is_vector(kept.statement)
        kind = self._emitter.ops.c_type(dtype, vector) + ("u" if vector else "")
        sharing = [k.statement for k in self._config.kept if k.slot == kept.slot]
        step = max(self._bytes(self._emitter.nest.statements[s].dtype) for s in sharing)
        row = -(-self._space.elems * step // 64) * 64
        if self._config.skew:
            row += (_APART - row) % _PAGE
        base = self._scratch.private(f"{self._label}_keep{kept.slot}", row * self._copies)
        place = f"{base} + {unit.copy} * {row}" if unit.copy else str(base + unit.number * row)
        return kind, f"(mine + {place} + {self._space.position(cell)} * {step})"

    def _bytes(self, dtype: DType) -> int:
        size = self._emitter.lanes.mask_bytes if dtype is DType.BOOL else dtype.compute.bytes
        return size * self._lanes
