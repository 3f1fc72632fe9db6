"""Operands, references and outputs of one nest in the child, and what is wrong after a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.loopnest import BufferRole, LoopNest
from kernel_gen.records import Failure, Stage
from kernel_gen.runtime.arena import storage_bytes
from kernel_gen.runtime.kernel import bytes_at
from tuner.checks.compare import mismatch
from tuner.child.messages import CheckSet
from tuner.child.outputs import OutputBuffer

Array = NDArray[Any]

WRONG_RESULT = "wrong-result"  # code of the failure


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """Mapped operands and references of one nest, and output buffers for its candidates."""

    nest: LoopNest
    arrays: tuple[Array, ...]
    sets: tuple[CheckSet, ...]
    outputs: tuple[OutputBuffer, ...]

    def operands(self, chosen: CheckSet) -> list[Array]:
        """All operands of a call, in the order of the nest's buffers."""
        inputs = iter(chosen.inputs)
        outputs = iter(self.outputs)
        return [
            next(outputs).array if buffer.role is BufferRole.OUTPUT else self.arrays[next(inputs)]
            for buffer in self.nest.buffers
        ]

    def over_inputs(self, chosen: CheckSet, pairs: Sequence[tuple[int, int]]) -> list[Array]:
        """The operands of a call that writes outputs over inputs, `pairs` of (input, output): those
        outputs hold the inputs' values, which this writes."""
        operands = self.operands(chosen)
        for source, output in pairs:
            shared = operands[output]
            np.copyto(shared, operands[source].view(shared.dtype))
            operands[source] = shared
        return operands

    def memory(self, chosen: CheckSet) -> list[NDArray[np.uint8]]:
        """The same as bytes, from the first element to the last."""
        return [
            bytes_at(array.ctypes.data, storage_bytes(buffer.type))
            for array, buffer in zip(self.operands(chosen), self.nest.buffers, strict=True)
        ]

    def wrong_output(self, chosen: CheckSet) -> Failure | None:
        """What is wrong with the outputs that a call has written."""
        for position, output in enumerate(self.outputs):
            problem = output.overrun() or self._difference(output, chosen, position)
            if problem is not None:
                return wrong_result(position, problem)
        return None

    def _difference(self, output: OutputBuffer, chosen: CheckSet, position: int) -> str | None:
        expected = self.arrays[chosen.expected[position]]
        if expected.dtype == np.bool_:
            expected = expected.view(np.uint8)
        mask = chosen.ambiguous[position]
        ambiguous = None if mask is None else self.arrays[mask]
        return mismatch(output.comparable, expected, chosen.tolerances[position], ambiguous)


def wrong_result(position: int, problem: str) -> Failure:
    """The failure of an output that is not what it should be."""
    return Failure(Stage.CHECK, WRONG_RESULT, f"output {position}: {problem}")
