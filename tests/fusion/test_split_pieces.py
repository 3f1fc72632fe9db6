"""Concats along an axis of equal pieces leave no test in the nest, and the same values."""

from __future__ import annotations

from fusion_cases import check, tensor

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.loopnest import Compute, Load, Reduce


def ops(nest):
    return [s.op for s in nest.statements if isinstance(s, Compute)]


def joined(b, widths):
    return b.op("concat", *(b.input(tensor(3, width)) for width in widths), dim=1)


def test_equal_pieces_are_stored_piece_by_piece():
    b = GraphBuilder()
    b.output(b.op("exp", joined(b, (4, 4, 4))))
    nest = check(b.build()).nest
    assert [axis.extent for axis in nest.axes] == [3, 4]
    assert ops(nest) == ["exp"] * 3
    assert len(nest.stores) == 3
    assert len({store.buffer for store in nest.stores}) == 1
    assert not any(s.guards for s in nest.statements if isinstance(s, Load))


def test_pieces_of_a_common_divisor_are_cut_to_it():
    b = GraphBuilder()
    b.output(b.op("exp", joined(b, (8, 4))))
    nest = check(b.build()).nest
    assert [axis.extent for axis in nest.axes] == [3, 4]
    assert len(nest.stores) == 3


def test_a_sum_over_many_pieces_is_a_sum_of_sums():
    b = GraphBuilder()
    wide = b.op("sigmoid", joined(b, (16,) * 26))
    b.output(b.op("sum", wide, dims=(1,), keepdim=False))
    nest = check(b.build(), tolerance=1e-4).nest
    assert sum(isinstance(s, Reduce) for s in nest.statements) == 26
    assert "where" not in ops(nest)


def test_pieces_without_a_common_size_keep_their_selects():
    b = GraphBuilder()
    b.output(b.op("exp", joined(b, (37, 40))))
    assert "where" in ops(check(b.build()).nest)


def test_rotated_halves_meet_without_a_select():
    b = GraphBuilder()
    x, cos = b.input(tensor(5, 8)), b.input(tensor(5, 8))
    left = b.op("slice", x, dim=1, start=0, stop=4, step=1)
    right = b.op("slice", x, dim=1, start=4, stop=8, step=1)
    turned = b.op("concat", b.op("neg", right), left, dim=1)
    b.output(b.op("mul", turned, cos))
    assert ops(check(b.build()).nest) == ["neg", "mul", "mul"]


def test_argmax_over_pieces_and_a_softmax_across_them():
    b = GraphBuilder()
    b.output(b.op("argmax", joined(b, (4, 4)), dims=(1,), keepdim=False))
    assert "where" in ops(check(b.build()).nest)
    b = GraphBuilder()
    b.output(b.op("softmax", joined(b, (4, 4)), dim=1))
    assert "where" not in ops(check(b.build()).nest)


def test_values_side_by_side_are_stored_with_steps() -> None:
    """Rotary of neighbouring pairs: a stack, whose axis a reshape has merged."""
    b = GraphBuilder()
    x, cos, sin = b.input(tensor(5, 8)), b.input(tensor(5, 4)), b.input(tensor(5, 4))
    even, odd = (b.op("slice", x, dim=1, start=s, stop=7 + s, step=2) for s in (0, 1))
    first = b.op("sub", b.op("mul", even, cos), b.op("mul", odd, sin))
    second = b.op("add", b.op("mul", even, sin), b.op("mul", odd, cos))
    pairs = [b.op("reshape", part, shape=(5, 4, 1)) for part in (first, second)]
    b.output(b.op("reshape", b.op("concat", *pairs, dim=2), shape=(5, 8)))
    nest = check(b.build()).nest
    assert len(nest.stores) == 2
    assert "where" not in ops(nest)
    assert sum(isinstance(s, Load) for s in nest.statements) == 4
