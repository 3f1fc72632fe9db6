"""Arena planning: values alive at one time never share bytes, others do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.arena import ALIGN_BYTES, Lifetime, align, place, storage_bytes


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    spans = draw(
        st.lists(
            st.tuples(st.integers(0, 5000), st.integers(0, 20), st.integers(0, 8)), max_size=25
        )
    )
    return [Lifetime(i, size, first, first + n) for i, (size, first, n) in enumerate(spans)]


@given(lifetimes())
def test_slots_of_one_time_are_disjoint(lives: list[Lifetime]) -> None:
    slots, total = place(lives)
    assert [slot.value for slot in slots] == [life.value for life in lives]
    for a, slot in zip(lives, slots, strict=True):
        assert slot.offset % ALIGN_BYTES == 0
        assert slot.offset + slot.nbytes <= total
        for b, other in zip(lives, slots, strict=True):
            if a is not b and a.nbytes and b.nbytes and a.first <= b.last and b.first <= a.last:
                apart = slot.offset + a.nbytes <= other.offset
                assert apart or other.offset + b.nbytes <= slot.offset


@given(lifetimes())
def test_arena_is_no_larger_than_all_values(lives: list[Lifetime]) -> None:
    """And no smaller than what is alive at the fullest moment."""
    _, total = place(lives)
    assert total <= sum(align(life.nbytes) for life in lives)
    steps = range(30)
    alive = [sum(align(a.nbytes) for a in lives if a.first <= t <= a.last) for t in steps]
    assert total >= max(alive)


def test_a_chain_needs_two_slots() -> None:
    """a -> b -> c -> d of one size: each step reads one and writes the next."""
    _, total = place([Lifetime(i, 1000, i, i + 1) for i in range(10)])
    assert total == 2 * 1024


def test_a_value_that_nobody_reads_still_gets_memory() -> None:
    slots, total = place([Lifetime(3, 10, 4, 4)])
    assert (slots[0].value, slots[0].nbytes, total) == (3, 10, 64)


def test_storage_bytes_spans_strides() -> None:
    assert storage_bytes(TensorType(DType.F32, (2, 3))) == 24
    assert storage_bytes(TensorType(DType.F32, (2, 3), (10, 1))) == (10 + 2 + 1) * 4
    assert storage_bytes(TensorType(DType.F32, (0, 3), (10, 1))) == 0
    assert storage_bytes(TensorType(DType.BF16, ())) == 2
