"""Hypothesis strategies shared by all packages: random graphs, inputs for them, and a comparison.

`graphs()` draws programs whose results can be compared with a tolerance: float values stay within
`tests.strategy_draft.LIMIT`, singular points are kept away from (log of |x| + ½, …), and ops that
jump (floor, compare, argmax, cast to an integer) read only values without rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import hypothesis.strategies as st
import ml_dtypes
import numpy as np

from kernel_gen.ir.arrays import Array, numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.graph import Graph, Input
from kernel_gen.ir.types import TensorType, static_shape
from tests.strategy_draft import WILD, Draft, Drawn
from tests.strategy_steps import STEPS
from tests.strategy_sums import with_other_sums
from tests.strategy_traits import Trait, traits

FLOATS = (DType.F64, DType.F32, DType.F16, DType.BF16)
INTEGERS = (DType.I64, DType.I32, DType.I16, DType.I8, DType.U8)
# Spacing of the floats above 1.
_EPS = {DType.F64: 2.0**-52, DType.F32: 2.0**-23, DType.F16: 2.0**-10, DType.BF16: 2.0**-7}


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    max_nodes: int = 10,
    dtypes: Sequence[DType] = tuple(DType),
    steps: Sequence[str] = tuple(STEPS),
    specials: bool | None = None,
    strided: bool = False,
) -> Graph:
    """A verified graph of at most about `max_nodes` steps (a step may emit a few nodes).

    `steps` names the kinds of ops to draw from (keys of `tests.strategy_steps.STEPS`). `specials`
    says whether inputs may hold NaN and infinities (None: either); without them, floats are also
    cast to integers. `strided` lets inputs lie in memory in any way. All unread values are outputs.
    """
    allowed = draw(st.booleans()) if specials is None else specials
    draft = Draft(Drawn(draw), tuple(dtypes), specials=allowed, strided=strided)
    draft.fresh_input()
    for _ in range(draw(st.integers(1, max_nodes))):
        STEPS[draw(st.sampled_from(list(steps)))](draft)
    return draft.finish()


@st.composite
def inputs_for(draw: st.DrawFn, graph: Graph) -> list[Array]:
    """Arrays for the inputs of a static graph: random within their domains, with edge values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [random_input(rng, graph.values[item.value], item) for item in graph.inputs]


def random_input(rng: np.random.Generator, type: TensorType, item: Input) -> Array:
    """One array of the type, in its layout, within the domain of the input."""
    return _laid_out(_random_values(rng, type, item), type)


def _laid_out(array: Array, type: TensorType) -> Array:
    """The array with the strides of the type, where it names some; of elements that share their
    memory, the last one's value."""
    if type.strides is None or not array.size:
        return array
    last = sum((n - 1) * s for n, s in zip(array.shape, type.strides, strict=True))
    memory = np.zeros(last + 1, array.dtype)
    strides = [stride * array.itemsize for stride in type.strides]
    made = np.lib.stride_tricks.as_strided(memory, array.shape, strides)
    made[...] = array
    return made


def _random_values(rng: np.random.Generator, type: TensorType, item: Input) -> Array:
    shape, domain = static_shape(type.shape), item.domain
    if type.dtype is DType.BOOL:
        return rng.random(shape) < 0.5
    if not type.dtype.is_float:
        limits = np.iinfo(numpy_dtype(type.dtype).name)
        low = int(limits.min if domain.low is None else domain.low)
        high = int(limits.max if domain.high is None else domain.high)
        found = rng.integers(low, high, shape, numpy_dtype(type.dtype).name, endpoint=True)
        return _strewn(
            rng, np.asarray(found), [low, high, *(x for x in (0, 1) if low <= x <= high)]
        )
    if item.name == WILD:
        return _wild_values(rng, type)
    low_f = -4.0 if domain.low is None else domain.low
    high_f = 4.0 if domain.high is None else domain.high
    edges = [low_f, high_f, *(x for x in (0.0, -0.0, 1.0, -1.0, 0.5) if low_f <= x <= high_f)]
    if not domain.finite:
        edges += [np.nan] + [np.inf] * (domain.high is None) + [-np.inf] * (domain.low is None)
    values = rng.uniform(low_f, high_f, shape)
    return _strewn(rng, np.asarray(values), edges).astype(numpy_dtype(type.dtype))


def _wild_values(rng: np.random.Generator, type: TensorType) -> Array:
    """Floats of any size: half of them of ordinary ones, and each limit of the type."""
    shape, numpy = static_shape(type.shape), numpy_dtype(type.dtype)
    limits = ml_dtypes.finfo(numpy)
    least, most = float(limits.smallest_subnormal), float(limits.max)
    low, high = math.log2(least), math.log2(most)
    powers = np.where(
        rng.random(shape) < 0.5, rng.uniform(low, high, shape), rng.uniform(-3.0, 7.0, shape)
    )
    values = np.copysign(2.0 ** np.minimum(powers, high), rng.uniform(-1.0, 1.0, shape))
    normal = float(limits.smallest_normal)
    edges = [0.0, least, normal - least, normal, 0.5, 1.0, 2.0, most, np.inf]
    edges = [*edges, *(-edge for edge in edges), np.nan]
    with np.errstate(over="ignore"):
        return _strewn(rng, np.asarray(values), edges).astype(numpy)


def _strewn(rng: np.random.Generator, array: Array, edges: Sequence[float]) -> Array:
    """The array with about one element in eight replaced by an edge value."""
    chosen = rng.random(array.shape) < 0.125
    picks = np.asarray(edges, array.dtype)[rng.integers(0, len(edges), array.shape)]
    return np.where(chosen, picks, array)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a graph gives on some inputs: in float64, and with rounding errors: at every step, and
    of sums added up in another order."""

    graph: Graph
    exact: Sequence[Array]
    rounded: Sequence[Sequence[Array]]

    def assert_matches(self, got: Sequence[Array]) -> None:
        """Results of a back end (in storage types) against the reference.

        Integers, bools and floats that no op has rounded are equal. How far another float may lie
        from the float64 value follows from how far rounding errors move it; NaN and infinities
        stand in the same places. Of a wild value each element has its own tolerance.
        """
        assert len(got) == len(self.graph.outputs)
        known = traits(self.graph)
        for position, (output, have) in enumerate(zip(self.graph.outputs, got, strict=True)):
            type, want = self.graph.values[output.value], self.exact[position]
            place = f"output {position}"
            assert have.dtype == numpy_dtype(type.dtype), f"{place}: {have.dtype}"
            assert have.shape == want.shape, f"{place}: {have.shape}, expected {want.shape}"
            trait = known[output.value]
            if type.dtype.is_float and (trait.exact or trait.wild):
                _assert_near(have, want, trait, self._wild_eps(type.dtype), place)
            elif type.dtype.is_float:
                eps, upstream = _EPS[type.dtype], _upstream_eps(self.graph, type.dtype)
                rounded = [outputs[position] for outputs in self.rounded]
                _assert_floats_match(have, want, rounded, eps, upstream, place)
            else:
                np.testing.assert_array_equal(have, want, err_msg=place)

    def _wild_eps(self, dtype: DType) -> float:
        return max(_EPS[dtype], _upstream_eps(self.graph, dtype))


def expected(graph: Graph, inputs: Sequence[Array]) -> Expected:
    """The reference, for as many results as there are to compare with it."""
    others = [g for g in (graph, with_other_sums(graph)) if g is not None]
    rounded = [evaluate(other, inputs, "strict") for other in others]
    return Expected(graph, evaluate(graph, inputs), rounded)


def assert_outputs_match(graph: Graph, inputs: Sequence[Array], got: Sequence[Array]) -> None:
    """One back end's results against the reference."""
    expected(graph, inputs).assert_matches(got)


def _upstream_eps(graph: Graph, dtype: DType) -> float:
    """The step of the coarsest float that a result of `dtype` may come from. Rounding need not
    show how far a neighbouring rounding upstream would move it: casts and composites of narrow
    floats round in both modes, and a single value may happen to lie next to a step."""
    floats = {t.dtype for t in graph.values if t.dtype.is_float}
    coarse = [d for d in floats if d in (DType.F16, DType.BF16) or _EPS[d] > _EPS[dtype]]
    return max((_EPS[d] for d in coarse), default=0.0)


def _assert_near(have: Array, want: Array, trait: Trait, eps: float, place: str) -> None:
    """Bits of an exact value; elements of a wild one by their relative error."""
    wide = have.astype(np.float64)
    if not trait.exact:
        _assert_wild_near(have, wide, want, eps, place)
        return
    np.testing.assert_array_equal(wide, want, err_msg=place)
    if trait.signed:
        numbers = ~np.isnan(want)
        signs = [np.signbit(array)[numbers] for array in (wide, want)]
        np.testing.assert_array_equal(*signs, err_msg=f"{place}: sign of zero")


def _assert_wild_near(have: Array, wide: Array, want: Array, eps: float, place: str) -> None:
    """Within some steps of `eps` of the element, or of 1; an infinity for what lies at the end of
    the type's range."""
    most = float(ml_dtypes.finfo(have.dtype).max)
    at_end = (np.abs(want) > most * (1 - 16 * eps)) & (np.abs(wide) > most * (1 - 32 * eps))
    with np.errstate(invalid="ignore"):
        near = np.abs(wide - want) <= 16 * eps * np.maximum(np.abs(want), 1.0)
    same = (wide == want) | (np.isnan(wide) & np.isnan(want))
    right = same | (near & np.isfinite(want)) | (at_end & (np.sign(wide) == np.sign(want)))
    if not right.all():
        worst = np.argmin(right)
        raise AssertionError(
            f"{place}: {(~right).sum()} of {right.size} elements; the first one is"
            f" {wide.flat[worst]!r}, expected {want.flat[worst]!r}"
        )


def _assert_floats_match(
    have: Array,
    want: Array,
    rounded: Sequence[Array],
    eps: float,
    upstream: float,
    place: str,
) -> None:
    moved = max(_furthest(want, other) for other in rounded)
    largest = np.abs(want[np.isfinite(want)]).max(initial=0.0)
    # The reference itself has float64's errors, which rounding f64 does not show.
    reference = (2.0**-42 + 8 * upstream) * max(largest, 1.0)
    atol = 16 * moved + 8 * eps * min(largest, 1.0) + reference
    np.testing.assert_allclose(
        have.astype(np.float64), want, rtol=8 * eps, atol=atol, err_msg=place
    )


def _furthest(want: Array, other: Array) -> float:
    """The largest difference of finite elements."""
    finite = np.isfinite(want) & np.isfinite(other)
    return float(np.abs(want[finite] - other[finite]).max(initial=0.0))
