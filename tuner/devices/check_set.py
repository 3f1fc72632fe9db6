"""Operands and references of one nest in shared memory, made once for all its candidates."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Buffer, BufferRole, LoopNest
from kernel_gen.ir.types import TensorType
from tuner.checks.compare import Tolerance, tolerance, value_scale
from tuner.checks.conditioning import either, hanging, multiplications, shaken, widened
from tuner.checks.narrow_operands import with_narrow_operands
from tuner.checks.operands import mixed_operands, plain_operands
from tuner.checks.reference import reference
from tuner.child import shared_memory
from tuner.child.messages import CheckSet, NestCheck, OpenCheck

Array = NDArray[Any]

_LEAST_FINITE = 0.9  # share of a reference
_MOST_EXEMPT = 0.02  # share of an output
_CHEAP_MACS = 2**31  # products that NumPy may make some more times


@dataclass(frozen=True, slots=True)
class CheckBlock:
    """A memfd with everything a check needs, and the message that opens it in a child."""

    handle: int
    message: OpenCheck

    @property
    def nbytes(self) -> int:
        return self.message.block.nbytes

    def close(self) -> None:
        """Give the memory back (children that map it keep it until they end)."""
        os.close(self.handle)


def build_check(check: NestCheck, exempt: bool = True) -> CheckBlock:
    """Draw operands and compute their references. Deterministic for a given check.

    Without `exempt` it takes a third of the time, but a right kernel may fail on what fp32 itself
    cannot say.
    """
    rng = np.random.default_rng((check.seed, zlib.crc32(check.key.encode())))
    arrays: list[tuple[DType, Array]] = []
    mixed = mixed_operands(check.nest, check.domains, rng)
    sets = [_check_set(check, mixed, arrays, has_edges=True, exempt=exempt)]
    if _says_little(arrays, sets[0]):
        # Edge values have spread (through a column sum, say): check ordinary values by themselves,
        # first, as they are also what candidates are timed on.
        plain = plain_operands(check.nest, check.domains, rng)
        sets.insert(0, _check_set(check, plain, arrays, has_edges=False, exempt=exempt))
    block = shared_memory.layout(arrays)
    handle = shared_memory.create(block)
    views = shared_memory.map_arrays(handle, block, writable=True)
    for view, (_, array) in zip(views, arrays, strict=True):
        np.copyto(view, array, casting="same_kind")
    return CheckBlock(handle, OpenCheck(check.key, check.nest, block, tuple(sets)))


def _check_set(
    check: NestCheck,
    inputs: list[Array],
    arrays: list[tuple[DType, Array]],
    *,
    has_edges: bool,
    exempt: bool,
) -> CheckSet:
    """Append a set's operands, references and masks to `arrays`; where they stand."""
    sources = [b for b in check.nest.buffers if b.role is not BufferRole.OUTPUT]
    inputs = [laid_out(array, b.type) for array, b in zip(inputs, sources, strict=True)]
    nest = _multiplied(check)
    expected, masks = reference(nest, inputs, check.strict)
    outputs = [i for i, b in enumerate(check.nest.buffers) if b.role is BufferRole.OUTPUT]
    scale = max((value_scale(array) for array in inputs), default=0.0)
    allowed = [_tolerance(check, o, e, scale) for o, e in zip(outputs, expected, strict=True)]
    if exempt and not check.strict and multiplications(check.nest) <= _CHEAP_MACS:
        moved = shaken(nest, inputs)
        if not has_edges:
            allowed = widened(allowed, expected, moved)
        masks = either(masks, hanging(nest, inputs, expected, allowed, moved))
    places = tuple(
        _append(arrays, buffer.type.dtype, array)
        for buffer, array in zip(sources, inputs, strict=True)
    )
    return CheckSet(
        places,
        tuple(
            _append(arrays, _reference_dtype(check.nest.buffers[o]), _contiguous(e))
            for o, e in zip(outputs, expected, strict=True)
        ),
        tuple(None if m is None else _append(arrays, DType.BOOL, _contiguous(m)) for m in masks),
        tuple(allowed),
    )


def _multiplied(check: NestCheck) -> LoopNest:
    """The nest that the device computes."""
    return with_narrow_operands(check.nest) if check.narrow_products else check.nest


def _contiguous(array: Array) -> Array:
    return array if array.flags.c_contiguous else array.copy(order="C")


def laid_out(array: Array, kind: TensorType) -> Array:
    """The values in the strides of `kind`; where elements share storage (stride 0) they become
    equal, so use the result and not `array`."""
    if kind.strides is None or not array.size:
        return array
    memory = np.zeros(shared_memory.span(array.shape, kind.strides), array.dtype)
    strides = tuple(array.itemsize * step for step in kind.strides)
    view = np.lib.stride_tricks.as_strided(memory, array.shape, strides)
    np.copyto(view, array)
    return view


def _says_little(arrays: list[tuple[DType, Array]], chosen: CheckSet) -> bool:
    """Whether more than a few values of a reference are not finite, or exempt."""
    references = [arrays[place][1] for place in chosen.expected]
    floats = [array for array in references if array.dtype.kind == "f" and array.size]
    exempt = [arrays[place][1] for place in chosen.ambiguous if place is not None]
    return any(np.isfinite(array).mean() < _LEAST_FINITE for array in floats) or any(
        mask.mean() > _MOST_EXEMPT for mask in exempt if mask.size
    )


def _append(arrays: list[tuple[DType, Array]], dtype: DType, array: Array) -> int:
    arrays.append((dtype, array))
    return len(arrays) - 1


def _reference_dtype(buffer: Buffer) -> DType:
    """Type that holds a reference: one float32 rounding is far below any tolerance."""
    dtype = buffer.type.dtype
    return DType.F32 if dtype.is_float and dtype is not DType.F64 else dtype


def _tolerance(check: NestCheck, output: int, expected: Array, scale: float) -> Tolerance:
    size = value_scale(expected) if expected.dtype.kind == "f" else 0.0
    # A result that cancels to nearly nothing still carries the rounding of what it came from.
    least = 1e-3 * min(scale, 1e3)
    narrow = check.narrow_products
    return tolerance(check.nest, output, max(size, least), check.strict, narrow)
