"""Outputs that may be written over the input that they replace.

Each element must be read and written by the same step of the loops, and read first. The template
has to keep that order (it computes all that a step stores before it stores); the compiler does so
as the two pointers are not `restrict`.
"""

from __future__ import annotations

from kernel_gen.codegen.flat.linear import FlatNest


def in_place_pairs(nest: FlatNest) -> tuple[tuple[int, int], ...]:
    """(input, output) buffers of a nest without reductions that may share memory."""
    return tuple(
        (buffer.replaces, number)
        for number, buffer in enumerate(nest.buffers)
        if buffer.replaces is not None and _may_share(nest, buffer.replaces, number)
    )


def _may_share(nest: FlatNest, source: int, output: int) -> bool:
    """Whether all accesses to both are the same one element of each point of the grid."""
    stores = [store for store in nest.stores if store.buffer == output]
    if len(stores) != 1 or nest.buffers[source].type != nest.buffers[output].type:
        return False
    (store,) = stores
    reads = [load for load in nest.loads() if load.buffer == source]
    return (
        not store.guards
        and store.at.axes() == {axis.name for axis in nest.axes}
        and all(load.at == store.at for load in reads)
    )
