"""Buffers that one instruction reads lie in different halves of a set of bank groups."""

from __future__ import annotations

from kernel_gen.codegen.ascend.instructions.banks import second_half
from kernel_gen.codegen.ascend.instructions.steps import Lanes, Step, Value

A, B, C = (Value(number, "float", Lanes.FULL) for number in range(3))
NAMES = {0: "a", 1: "b", 2: "c"}


def test_two_sources_are_kept_apart() -> None:
    late = second_half([Step("Add", (A, B), (C,))], NAMES)
    assert ("a" in late) != ("b" in late)


def test_a_result_that_overwrites_its_source_meets_nothing() -> None:
    assert second_half([Step("Exp", (A,), (A,))], NAMES) == frozenset()


def test_what_meets_most_often_decides() -> None:
    steps = [Step("Add", (A, B), (B,)), Step("Add", (A, B), (B,)), Step("Mul", (A, C), (C,))]
    late = second_half(steps, NAMES)
    assert ("a" in late) != ("b" in late)
    assert ("a" in late) != ("c" in late)


def test_scalar_work_does_not_count() -> None:
    assert second_half([Step("loop", (A, B), (C,), vector=False)], NAMES) == frozenset()
