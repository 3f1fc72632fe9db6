"""NumPy executor of loop nests: the back end without generated code, and the checks' reference.

The grid is cut into blocks: by a schedule's `tile` decisions, so that its tails are run as well,
else so that a block's values stay in a cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.errors import InvalidGraph
from kernel_gen.executor.block import Block
from kernel_gen.executor.evaluation import Evaluation
from kernel_gen.executor.grid import Tiling, pieces, store_cuts
from kernel_gen.executor.noise import Noise
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.loopnest import BufferRole, LoopNest, reduced_axes

Array = NDArray[Any]
_POISON = 77  # what an element holds that no store has written


def execute(
    nest: LoopNest,
    operands: Sequence[Array],
    schedule: Tiling | None = None,
    precision: str = "f32",
    noise: Noise | None = None,
) -> list[Array]:
    """The nest's outputs, in the order of its output buffers.

    `operands` are the arrays of its other buffers, in order. `precision` "f32" computes as kernels
    do, "flushed" as well but with zeros for subnormal results, "f64" computes all floats in float64
    and rounds only where a `cast` says so. `noise` puts rounding errors in. Raises InvalidGraph
    where operands do not fit.
    """
    evaluation = Evaluation(nest, operands, _bind(nest, operands), precision, noise)
    known = evaluation.known
    outputs = {
        number: np.full(
            [known(d) for d in buffer.type.shape], _POISON, numpy_dtype(buffer.type.dtype)
        )
        for number, buffer in enumerate(nest.buffers)
        if buffer.role is BufferRole.OUTPUT
    }
    whole = Block(evaluation, {axis.name: (0, known(axis.extent)) for axis in nest.axes})
    with np.errstate(all="ignore"):
        for stores, sizes in store_cuts(nest, evaluation.live, whole.ranges, schedule):
            for block in _parts(nest, whole, sizes):
                for store in stores:
                    block.store(store, outputs[store.buffer])
    return list(outputs.values())


def _parts(nest: LoopNest, whole: Block, sizes: Mapping[str, int]) -> Iterator[Block]:
    """Blocks of `sizes` along some axes. Those along axes that are reduced lie in one that is whole
    along them, which has the reductions."""
    reduced = reduced_axes(nest.statements)
    for block in _cut(whole, {axis: size for axis, size in sizes.items() if axis not in reduced}):
        yield from _cut(block, {axis: size for axis, size in sizes.items() if axis in reduced})


def _cut(whole: Block, sizes: Mapping[str, int]) -> Iterator[Block]:
    """Blocks of `sizes` along some axes; `whole` itself where nothing is cut."""
    cuts = [list(pieces(whole.ranges[axis], size)) for axis, size in sizes.items()]
    for ranges in itertools.product(*cuts):
        yield whole.inside(dict(zip(sizes, ranges, strict=True))) if sizes else whole


def _bind(nest: LoopNest, operands: Sequence[Array]) -> dict[str, int]:
    """Values of the symbols, from the operands' shapes."""
    reads = [buffer for buffer in nest.buffers if buffer.role is not BufferRole.OUTPUT]
    if len(reads) != len(operands):
        raise InvalidGraph(f"{len(operands)} operands given, the nest reads {len(reads)}")
    symbols: dict[str, int] = {}
    for position, (buffer, operand) in enumerate(zip(reads, operands, strict=True)):
        expected = tuple(
            d if isinstance(d, int) else symbols.setdefault(d.name, found)
            for d, found in zip(buffer.type.shape, operand.shape, strict=True)
        )
        if operand.shape != expected or operand.dtype != numpy_dtype(buffer.type.dtype):
            raise InvalidGraph(
                f"operand {position}: {operand.dtype} {operand.shape}, expected {buffer.type}"
            )
    return symbols
