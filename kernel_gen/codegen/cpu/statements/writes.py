"""Text of stores: scalars, contiguous vectors, streaming vectors, scattered lanes."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.statements.address import Addresses
from kernel_gen.codegen.cpu.statements.ops import OpWriter
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.vectors.moves import can_stream, store_function
from kernel_gen.codegen.cpu.vectors.stored import scalar_store
from kernel_gen.codegen.flat.linear import FlatStore
from kernel_gen.ir.dtype import DType


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes stores; `stream` are the buffers to store to past the cache."""

    ops: OpWriter
    addresses: Addresses
    stream: frozenset[int]

    def write(
        self, store: FlatStore, stored: DType, value: Value, axis: str | None, scope: Scope
    ) -> None:
        """Stores `value` (in the compute type of `stored`); `axis`: the vector axis, if used."""
        if axis is None:
            self._scalar(store, stored, value, scope)
            return
        vector = self.ops.broadcast(value)
        run = store.at.coeff(axis).const == 1 and store.at.is_affine_in(axis)
        if run and not store.guards:
            self._vector(store, stored, vector, scope)
        else:
            self._lanes(store, stored, vector, scope)

    def _scalar(self, store: FlatStore, stored: DType, value: Value, scope: Scope) -> None:
        conditions = [self.addresses.guard(g, scope) for g in store.guards]
        check = f"if ({' && '.join(conditions)}) " if conditions else ""
        text = scalar_store(self.ops.unit, stored, value.text)
        at = self.addresses.offset(store.at, scope)
        scope.add(f"{check}b{store.buffer}[{at}] = {text};")

    def _vector(self, store: FlatStore, stored: DType, value: Value, scope: Scope) -> None:
        part, lanes = scope.live_lanes(), self.ops.lanes
        stream = store.buffer in self.stream and part is None and can_stream(stored, lanes.count)
        function = store_function(
            self.ops.unit, stored, lanes, partial=part is not None, stream=stream
        )
        extra = f", {part}" if part is not None else ""
        at = self.addresses.offset(store.at, scope)
        scope.add(f"{function}(b{store.buffer} + {at}, {value.text}{extra});")

    def _lanes(self, store: FlatStore, stored: DType, value: Value, scope: Scope) -> None:
        conditions = [self.addresses.guard(g, scope, lane="l") for g in store.guards]
        limit = scope.live_lanes()
        if limit is not None:
            conditions.insert(0, f"l < {limit}")
        check = f"if ({' && '.join(conditions)}) " if conditions else ""
        element = "x[l] != 0" if stored is DType.BOOL else "x[l]"
        text = scalar_store(self.ops.unit, stored, element)
        at = self.addresses.offset(store.at, scope, lane="l")
        kind = self.ops.c_type(stored.compute, vector=True)
        scope.add(
            f"{{\n  const {kind} x = {value.text};\n"
            f"  for (int l = 0; l < {self.ops.lanes.count}; l++) "
            f"{check}b{store.buffer}[{at}] = {text};\n}}"
        )
