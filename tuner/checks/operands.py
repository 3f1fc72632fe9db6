"""Operands for a check: random values within each buffer's domain, with or without edges.

"Plain" operands are ordinary finite values. "Mixed" ones hold, besides, about one edge value in a
thousand elements (zeros of both signs, ones, tiny and large values, the domain's bounds) and, in
few places of inputs that may hold them, infinities and NaN. Edges are rare so that they do not hide
other faults; constants stay finite, as one NaN in a weight would poison the whole result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, Input, InputKind
from kernel_gen.ir.index import Index
from kernel_gen.ir.loopnest import Buffer, BufferRole, Load, LoopNest, operands
from kernel_gen.ir.types import TensorType, ValueDomain, static_shape
from tuner.checks.bags import Starts, bag_starts

Array = NDArray[Any]

_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, -1e-5, 30.0, -30.0, 95.0, -95.0)
_SPECIALS = (math.inf, -math.inf, math.nan)
_SPECIAL_PLACES = 3
_LEAST_EDGES = 16
_EDGE_DISTANCE = 1000  # elements per edge value
_DRAWN = 262_147  # values drawn for an array at most, then repeated; prime, so that rows differ


def plain_operands(
    nest: LoopNest, domains: Sequence[ValueDomain], rng: np.random.Generator
) -> list[Array]:
    """One array per non-output buffer of `nest`, in order, with ordinary values."""
    return [_plain(buffer, domain, rng) for buffer, domain in _inputs(nest, domains)]


def mixed_operands(
    nest: LoopNest, domains: Sequence[ValueDomain], rng: np.random.Generator
) -> list[Array]:
    """As `plain_operands`, with edge values among them."""
    return [_with_edges(buffer, domain, rng) for buffer, domain in _inputs(nest, domains)]


def graph_operands(
    graph: Graph,
    domains: Sequence[ValueDomain],
    rng: np.random.Generator,
    *,
    tame: bool = False,
) -> list[Array]:
    """Ordinary values for each input of a program, given the domains of its values. Matrices of
    weights are scaled by 1/√fan-in, as trained ones roughly are, so that deep programs neither
    vanish nor overflow; starts of bags ascend.

    With `tame`, floats whose domain says nothing are what most ops with demands of their own take:
    probabilities, and square matrices positive definite.
    """
    starts = bag_starts(graph)
    return [
        _starts(graph, given, starts[given.value], rng)
        if given.value in starts
        else _tame_operand(graph.type_of(given.value), rng)
        if tame and _is_open(graph, given, domains[given.value])
        else _graph_operand(graph, given, domains[given.value], rng)
        for given in graph.inputs
    ]


def _is_open(graph: Graph, given: Input, domain: ValueDomain) -> bool:
    kind = graph.type_of(given.value)
    is_free = domain.low is None and domain.high is None
    return given.kind is InputKind.USER and kind.dtype.is_float and is_free


def _tame_operand(kind: TensorType, rng: np.random.Generator) -> Array:
    """Between 0 and 1; square matrices symmetric, their diagonals more than the rest of a row."""
    shape = static_shape(kind.shape)
    drawn: Array = rng.random(shape, dtype=np.float32)
    if kind.rank >= 2 and shape[-1] == shape[-2]:
        drawn = (drawn + np.swapaxes(drawn, -1, -2)) / (8 * max(shape[-1], 1))
        drawn = drawn + np.eye(shape[-1]) / 2
    return drawn.astype(numpy_dtype(kind.dtype))


def _starts(graph: Graph, given: Input, starts: Starts, rng: np.random.Generator) -> Array:
    kind = graph.type_of(given.value)
    return (
        starts.draw(kind.elems, rng)
        .astype(numpy_dtype(kind.dtype))
        .reshape(static_shape(kind.shape))
    )


def _graph_operand(
    graph: Graph, given: Input, domain: ValueDomain, rng: np.random.Generator
) -> Array:
    kind = graph.type_of(given.value)
    role = BufferRole.INPUT if given.kind is InputKind.USER else BufferRole.CONSTANT
    array = _plain(Buffer(kind, role), domain, rng)
    if given.kind is InputKind.USER or not kind.dtype.is_float or kind.rank < 2:
        return array
    fan_in = max(1, array.size // max(1, array.shape[0]))
    return (array.astype(np.float32) / np.float32(math.sqrt(fan_in))).astype(array.dtype)


def _inputs(nest: LoopNest, domains: Sequence[ValueDomain]) -> list[tuple[Buffer, ValueDomain]]:
    bounds = index_bounds(nest)
    return [
        (buffer, _narrowed(domain, bounds.get(position)))
        for position, (buffer, domain) in enumerate(zip(nest.buffers, domains, strict=True))
        if buffer.role is not BufferRole.OUTPUT
    ]


def _narrowed(domain: ValueDomain, extent: int | None) -> ValueDomain:
    if extent is None:
        return domain
    low = 0.0 if domain.low is None else max(0.0, domain.low)
    high = extent - 1.0 if domain.high is None else min(extent - 1.0, domain.high)
    return ValueDomain(low, max(low, high), finite=True)


def index_bounds(nest: LoopNest) -> dict[int, int]:
    """Buffer -> smallest extent of a dimension that values of this buffer address.

    Buffers whose values are used as positions in another buffer must stay inside it.
    """
    found: dict[int, int] = {}
    for statement in nest.statements:
        if not isinstance(statement, Load):
            continue
        shape = static_shape(nest.buffers[statement.buffer].type.shape)
        for index, extent in zip(statement.index, shape, strict=True):
            for source in _sources(nest, index):
                found[source] = min(found.get(source, extent), extent)
    return found


def _sources(nest: LoopNest, index: Index) -> set[int]:
    """Buffers that feed the value terms of an index."""
    found: set[int] = set()
    pending = list(index.statements())
    while pending:
        statement = nest.statements[pending.pop()]
        if isinstance(statement, Load):
            found.add(statement.buffer)
        pending.extend(operands(statement))
    return found


def _plain(buffer: Buffer, domain: ValueDomain, rng: np.random.Generator) -> Array:
    shape = static_shape(buffer.type.shape)
    dtype = buffer.type.dtype
    size = math.prod(shape)
    drawn = _drawn(dtype, domain, min(size, _DRAWN), rng)
    return np.resize(drawn, shape) if size else np.empty(shape, numpy_dtype(dtype))


def _drawn(dtype: DType, domain: ValueDomain, size: int, rng: np.random.Generator) -> Array:
    if dtype is DType.BOOL:
        return rng.integers(0, 2, size, dtype=np.uint8).astype(np.bool_)
    if dtype.is_integer:
        low, high = _integer_range(domain, dtype)
        return rng.integers(low, high, size, dtype=numpy_dtype(dtype), endpoint=True)
    return _floats(domain, size, rng).astype(numpy_dtype(dtype), copy=False)


def _integer_range(domain: ValueDomain, dtype: DType) -> tuple[int, int]:
    lowest, highest = integer_bounds(dtype)
    low = max(lowest, -100) if domain.low is None else math.ceil(domain.low)
    high = min(highest, 100) if domain.high is None else math.floor(domain.high)
    if domain.high is None:
        high = max(low, high)
    return max(low, lowest), min(max(low, high), highest)


def _floats(domain: ValueDomain, size: int, rng: np.random.Generator) -> Array:
    """Standard normal values where the domain is open, uniform ones between two bounds."""
    if domain.low is not None and domain.high is not None:
        low, high = max(domain.low, -1e30), min(domain.high, 1e30)
        return (low + (high - low) * rng.random(size, dtype=np.float32)).astype(np.float32)
    values = rng.standard_normal(size, dtype=np.float32)
    if domain.low is not None:
        return np.abs(values) + np.float32(domain.low)
    if domain.high is not None:
        return np.float32(domain.high) - np.abs(values)
    return values


def _with_edges(buffer: Buffer, domain: ValueDomain, rng: np.random.Generator) -> Array:
    array = np.atleast_1d(_plain(buffer, domain, rng))
    flat = array.reshape(-1)
    if flat.size and buffer.type.dtype is not DType.BOOL:
        edges = _edges(buffer.type.dtype, domain)
        places = rng.integers(0, flat.size, max(_LEAST_EDGES, flat.size // _EDGE_DISTANCE))
        flat[places] = rng.choice(edges, places.size)
        if _may_be_special(buffer, domain):
            places = rng.integers(0, flat.size, _SPECIAL_PLACES)
            flat[places] = np.array(_SPECIALS).astype(flat.dtype)
    return array.reshape(static_shape(buffer.type.shape))


def _may_be_special(buffer: Buffer, domain: ValueDomain) -> bool:
    bounded = domain.finite or domain.low is not None or domain.high is not None
    return buffer.type.dtype.is_float and buffer.role is BufferRole.INPUT and not bounded


def _edges(dtype: DType, domain: ValueDomain) -> Array:
    """Edge values of a type that lie within the domain; never empty."""
    if dtype.is_integer:
        lowest, highest = integer_bounds(dtype)
        low = lowest if domain.low is None else math.ceil(domain.low)
        high = highest if domain.high is None else math.floor(domain.high)
        low, high = max(low, lowest), min(high, highest)
        inner = [v for v in (0, 1, -1) if low <= v <= high]
        return np.array([low, high, *inner], dtype=numpy_dtype(dtype))
    bounds = [b for b in (domain.low, domain.high) if b is not None and abs(b) < 1e30]
    kept = [
        value
        for value in (*_EDGES, *bounds)
        if (domain.low is None or value >= domain.low)
        and (domain.high is None or value <= domain.high)
    ]
    return np.array(kept or [domain.low or 0.0]).astype(numpy_dtype(dtype))


def integer_bounds(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = 8 * dtype.bytes
    return (0, 2**bits - 1) if dtype is DType.U8 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
