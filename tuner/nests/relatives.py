"""Nests that make the same products and differ in what stands before and behind them.

A convolution alone, with its relu, and with the sum of its block are three nests of one core: what
tiles suit one suit the others, and what the model misjudges of one it misjudges of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernel_gen.ir.loopnest import Contract, Load, LoopNest, closure, operands

Core = tuple[object, ...]


def core_of(nest: LoopNest) -> Core | None:
    """What the products of a nest multiply, and over which axes: equal for relatives. None for a
    nest without a product."""
    contracts = [statement for statement in nest.statements if isinstance(statement, Contract)]
    if not contracts:
        return None
    extents = {axis.name: axis.extent for axis in nest.axes}
    live = nest.statement_axes()
    return tuple(
        (
            _read(nest, contract.lhs),
            _read(nest, contract.rhs),
            tuple((name, extents[name]) for name in (*live[contract.lhs], *live[contract.rhs])),
            contract.axes,
            contract.dtype,
        )
        for contract in contracts
    )


def relatives(nests: Mapping[str, LoopNest]) -> dict[str, tuple[str, ...]]:
    """For each nest by its digest, the others of its core."""
    families: dict[Core, list[str]] = {}
    for digest, nest in nests.items():
        core = core_of(nest)
        if core is not None:
            families.setdefault(core, []).append(digest)
    alone = dict.fromkeys(nests, ())
    return alone | {d: _others(family, d) for family in families.values() for d in family}


def _others(family: Sequence[str], digest: str) -> tuple[str, ...]:
    return tuple(other for other in family if other != digest)


def _read(nest: LoopNest, operand: int) -> Core:
    """What an operand of a product reads, by type and place."""
    made_from = closure([operand], lambda number: operands(nest.statements[number]))
    return tuple(_loads(nest, sorted(made_from)))


def _loads(nest: LoopNest, numbers: Iterable[int]) -> Iterable[object]:
    for number in numbers:
        load = nest.statements[number]
        if isinstance(load, Load):
            buffer = nest.buffers[load.buffer]
            yield buffer.type, buffer.role, load.index, load.guards
