"""Operands and references of one nest in shared memory, made once for all its candidates."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.executor.execute import execute
from kernel_gen.executor.noise import Noise
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Buffer, BufferRole, Contract, LoopNest
from kernel_gen.ir.types import TensorType
from tuner import shared_memory
from tuner.boundary import with_ambiguity
from tuner.check import (
    Tolerance,
    differing,
    known_extent,
    tolerance,
    value_scale,
)
from tuner.messages import CheckSet, NestCheck, OpenCheck
from tuner.narrow_operands import with_narrow_operands
from tuner.operands import mixed_operands, plain_operands

Array = NDArray[Any]


_LEAST_FINITE = 0.9  # share of a reference
_MOST_EXEMPT = 0.02  # share of an output
_CONDITION = 8.0  # another order of rounding may err so many times more than NumPy's
_CHEAP_MACS = 2**31  # products that NumPy may make some more times
_SHAKEN = 1.25  # by this the tolerance is above what put-in rounding errors may change
_SHAKES = 2  # of products; one may happen to leave an element where it is
_TYPICAL = 0.999  # quantile of ordinary elements whose rounding a tolerance covers
_MOST_WIDENED = 64.0  # times the usual tolerance: 2e-4 in fp32, about a program's
_SAMPLE = 20_011  # elements that the quantile is taken of


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
    if exempt and not check.strict and _macs(check.nest) <= _CHEAP_MACS:
        moved = _shaken(nest, inputs)
        if not has_edges:
            allowed = _widened(allowed, expected, moved)
        masks = _either(masks, _ill_conditioned(nest, inputs, expected, allowed, moved))
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


def reference(
    nest: LoopNest, inputs: Sequence[Array], strict: bool
) -> tuple[list[Array], list[Array | None]]:
    """Reference outputs and their masks of ambiguous elements (None: there are none).

    Integers and bools in their own type. Floats in float64; `strict`: in their own type, with the
    nest's explicit roundings.
    """
    subject = nest if strict else _wide_outputs(nest)
    marked, masks = with_ambiguity(subject, _boundary_tolerance(nest))
    results = execute(marked, inputs, precision="f32" if strict else "f64")
    count = sum(buffer.role is BufferRole.OUTPUT for buffer in nest.buffers)
    extra = iter(results[count:])
    return results[:count], [None if mask is None else next(extra) for mask in masks]


def ill_conditioned(
    nest: LoopNest, inputs: Sequence[Array], expected: Sequence[Array], allowed: Sequence[Tolerance]
) -> list[Array | None]:
    """Per output, the elements for which fp32 arithmetic itself (NumPy's) is not well within
    tolerance of float64: log(1 - sigmoid(30)) is -inf in the one and -30 in the other,
    log(exp(-100)) hangs on the few bits of a subnormal number.

    Also those that hang on a last bit, or on the order of a product's sums: 1 - b^t cancels for b
    near 1; where silu(gate) is multiplied by a large value, its slope at a gate of -20 turns a
    rounding of the sum into a wrong digit.
    """
    return _ill_conditioned(nest, inputs, expected, allowed, _shaken(nest, inputs))


def _ill_conditioned(
    nest: LoopNest,
    inputs: Sequence[Array],
    expected: Sequence[Array],
    allowed: Sequence[Tolerance],
    moved: Sequence[Sequence[Array]],
) -> list[Array | None]:
    with np.errstate(all="ignore"):
        narrow = execute(nest, inputs, precision="flushed")
        found = _beyond(narrow, expected, allowed, _CONDITION)
        for made in moved:
            found = _either(found, _beyond(made, expected, allowed, _SHAKEN))
    return found


def _shaken(nest: LoopNest, inputs: Sequence[Array]) -> list[list[Array]]:
    """The outputs with rounding errors put in, some times."""
    subject = _wide_outputs(nest)
    draws = range(_SHAKES if _macs(nest) else 1)
    return [execute(subject, inputs, precision="f64", noise=Noise(seed)) for seed in draws]


def _widened(
    allowed: Sequence[Tolerance], expected: Sequence[Array], moved: Sequence[Sequence[Array]]
) -> list[Tolerance]:
    """Tolerances that cover what rounding does to ordinary elements of each output: all of Adam's
    update hangs on the few digits that 1 - b^t keeps."""
    return [
        limit.divided_by(1 / _loss(limit, want, [made[k] for made in moved]))
        for k, (limit, want) in enumerate(zip(allowed, expected, strict=True))
    ]


def _loss(limit: Tolerance, expected: Array, moved: Sequence[Array]) -> float:
    """How many times the tolerance rounding may take, with a reserve of two; at least 1."""
    if not limit.absolute or not expected.size:
        return 1.0
    step = max(1, expected.size // _SAMPLE)
    want = expected.reshape(-1)[::step].astype(np.float64)
    with np.errstate(all="ignore"):
        off = np.max([np.abs(made.reshape(-1)[::step] - want) for made in moved], axis=0)
        shares = off / (np.abs(want) * limit.relative + limit.absolute)
    known = shares[np.isfinite(shares)]
    typical = float(np.quantile(known, _TYPICAL)) if known.size else 0.0
    return min(max(1.0, 2 * typical), _MOST_WIDENED)


def _beyond(
    made: Sequence[Array], expected: Sequence[Array], allowed: Sequence[Tolerance], factor: float
) -> list[Array | None]:
    """Per output, where it differs by more than a share of the tolerance."""
    found: list[Array | None] = []
    for have, want, limit in zip(made, expected, allowed, strict=True):
        beyond = differing(have, want, limit.divided_by(factor))
        found.append(beyond if beyond.any() else None)
    return found


def _either(left: Sequence[Array | None], right: Sequence[Array | None]) -> list[Array | None]:
    pairs = zip(left, right, strict=True)
    return [b if a is None else a if b is None else a | b for a, b in pairs]


def _macs(nest: LoopNest) -> int:
    """Multiplications of the nest's matrix products."""
    live = nest.statement_axes()
    return sum(
        math.prod(
            known_extent(nest.axis(axis).extent) for axis in {*live[position], *statement.axes}
        )
        for position, statement in enumerate(nest.statements)
        if isinstance(statement, Contract)
    )


def _boundary_tolerance(nest: LoopNest) -> float:
    floats = [i for i, b in enumerate(nest.buffers) if b.type.dtype.is_float]
    return max((tolerance(nest, i, 1.0).absolute for i in floats), default=1e-5)


def _wide_outputs(nest: LoopNest) -> LoopNest:
    """The nest with float outputs stored as float64, so that no reference is rounded."""
    return replace(nest, buffers=tuple(_wide(buffer) for buffer in nest.buffers))


def _wide(buffer: Buffer) -> Buffer:
    if buffer.role is not BufferRole.OUTPUT or not buffer.type.dtype.is_float:
        return buffer
    return replace(buffer, type=replace(buffer.type, dtype=DType.F64))
