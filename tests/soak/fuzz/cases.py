"""Random graphs by number: seed 17 is the same graph with the same inputs everywhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernel_gen.ir.arrays import Array
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from tests.strategies import random_input
from tests.strategy_draft import Draft, Thrown
from tests.strategy_steps import STEPS
from tests.strategy_wild import WILD_STEPS
from tests.strategy_windows import WINDOW_STEPS

ALL_STEPS = {**STEPS, **WILD_STEPS, **WINDOW_STEPS}
_TYPICAL_STEPS, _MOST_STEPS = 4.0, 14
# Steps that stand for many ops come more often.
_WEIGHT = {
    **dict.fromkeys(("smooth", "binary", "wild_unary"), 5),
    **dict.fromkeys(("jump", "compare", "wild_binary", "reduction", "activation"), 2),
}
_WEIGHTED = [step for step in ALL_STEPS for _ in range(_WEIGHT.get(step, 1))]
_STRUCTURED = 0.4  # share of the graphs
_CENTRES = (
    *("matmul", "matmul", "matmul", "attention", "convolution", "softmax", "norm", "norm"),
    *("moment", "reduction", "reduction", "position", "conv_transpose", "weight_gradient"),
    *("pool", "pool_back", "resize"),
)
_BEFORE = ("smooth", "binary", "activation", "norm", "permute", "reshape", "indexed", "pad", "cast")
_AFTER = (
    *("smooth", "binary", "binary", "activation", "activation", "softmax", "norm", "reshape"),
    *("permute", "cast", "where", "reduction", "slice", "concat", "moment"),
)
_ROWS, _COLUMNS = (1, 2, 3, 5, 8, 13), (3, 8, 16, 17, 24, 33, 40)
_MANY_COLUMNS = (48, 64, 67, 130, 257, 300)
_INTEGERS = (DType.I64, DType.I32, DType.I16, DType.I8, DType.U8)
_FLOATS = (DType.F32, DType.F32, DType.BF16, DType.F16, DType.F64)


@dataclass(frozen=True, slots=True)
class FuzzCase:
    """A graph with inputs, and the numerics it is lowered under; `seed` draws what else is
    random of its check."""

    seed: int
    graph: Graph
    inputs: Sequence[Array]
    numerics: str


def fuzz_case(seed: int) -> FuzzCase:
    """The case of this number; its graph has at least one node."""
    rng = random.Random(seed)
    graph = _graph(rng)
    while not graph.nodes:
        graph = _graph(rng)
    numbers = np.random.default_rng(rng.getrandbits(32))
    inputs = [random_input(numbers, graph.type_of(item.value), item) for item in graph.inputs]
    return FuzzCase(seed, graph, inputs, rng.choice(("fast", "fast", "strict")))


def _graph(rng: random.Random) -> Graph:
    return _structured(rng) if rng.random() < _STRUCTURED else _any(rng)


def _any(rng: random.Random) -> Graph:
    """Any steps, or a few kinds again and again, on values of any shapes and layouts."""
    draft = Draft(
        Thrown(rng), _dtypes(rng), specials=rng.random() < 0.5, strided=rng.random() < 0.7
    )
    draft.fresh_input()
    count = min(1 + int(rng.expovariate(1 / _TYPICAL_STEPS)), _MOST_STEPS)
    kinds = _WEIGHTED if rng.random() < 0.6 else rng.sample(_WEIGHTED, 3)
    for step in rng.choices(kinds, k=count):
        ALL_STEPS[step](draft)
    return draft.finish()


def _structured(rng: random.Random) -> Graph:
    """A chain as models have it, which the templates for rows and for products take."""
    draft = Draft(
        Thrown(rng),
        (rng.choice(_FLOATS),),
        specials=rng.random() < 0.3,
        strided=rng.random() < 0.3,
        chained=True,
        large=rng.random() < 0.4,
    )
    rows = [rng.choice(_ROWS) for _ in range(rng.choice((1, 1, 2)))]
    columns = _MANY_COLUMNS if draft.large else _COLUMNS
    draft.fresh_input(shape=(*rows, rng.choice(columns)))
    before = rng.choices(_BEFORE, k=rng.randint(0, 2))
    after = rng.choices(_AFTER, k=rng.randint(0, 3))
    for step in (*before, rng.choice(_CENTRES), *after):
        ALL_STEPS[step](draft)
    return draft.finish()


def _dtypes(rng: random.Random) -> tuple[DType, ...]:
    """All of them, or few: values of one type meet more often."""
    way = rng.random()
    if way < 0.3:
        return tuple(DType)
    if way < 0.4:
        return (rng.choice(_INTEGERS), DType.BOOL)
    some = [rng.choice(_FLOATS)] if way < 0.7 else rng.sample(list(DType), 3)
    return tuple(dict.fromkeys((*some, *((DType.BOOL,) if rng.random() < 0.3 else ()))))
