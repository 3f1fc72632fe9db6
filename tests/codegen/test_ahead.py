"""Rows fetched ahead: which stage fetches what."""

from __future__ import annotations

from kernel_gen.codegen.cpu.pointwise import Pointwise
from kernel_gen.codegen.cpu.reductions.ahead import fetch_ahead
from kernel_gen.codegen.cpu.reductions.keep import kept_values
from kernel_gen.codegen.cpu.reductions.rowspace import prepared
from kernel_gen.errors import Refusal
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.runtime.host import host_target
from tests.codegen.kernel_graphs import case_of, single, tensor


def test_the_exponentials_of_a_softmax_cover_the_next_row() -> None:
    nest = case_of(single("softmax", tensor(8, 100), dim=1)).lowered.nest
    _, plan = prepared(nest)
    staged = plan.phases[0]
    vector = staged.phase.inner[0]
    kept = kept_values(staged.nest, staged.phase, "costly")
    ahead = fetch_ahead(staged.nest, staged.phase, vector, kept, 2)
    assert ahead is not None
    assert (ahead.stage, ahead.axis, ahead.rows) == (1, staged.phase.outer[-1], 2)
    assert [load.buffer for load in ahead.loads] == [0]
    assert fetch_ahead(staged.nest, staged.phase, vector, kept, 0) is None
    assert fetch_ahead(staged.nest, staged.phase, staged.phase.outer[-1], kept, 2) is None


def test_what_all_rows_share_is_not_fetched() -> None:
    norm = single(
        "layer_norm",
        tensor(8, 100),
        tensor(100),
        tensor(100),
        axes=1,
        eps=1e-5,
        weight=True,
        bias=True,
    )
    _, plan = prepared(case_of(norm).lowered.nest)
    staged = plan.phases[0]
    ahead = fetch_ahead(staged.nest, staged.phase, staged.phase.inner[0], (), 1)
    assert ahead is not None
    assert [load.buffer for load in ahead.loads] == [0]


def test_a_tile_fetches_what_moves_with_the_next_row_of_tiles() -> None:
    b = GraphBuilder()
    x, y, bias = (b.input(tensor(*shape)) for shape in ((64, 48), (48, 64), (64,)))
    total = b.op("add", b.op("permute", x, dims=(1, 0)), y)
    b.output(b.op("relu", b.op("add", total, bias)))
    nest, target, template = case_of(b.build()).lowered.nest, host_target("x86-64"), Pointwise()
    for ahead in (0, 1):
        point = {**dict(template.space(nest, target).seeds[0]), "ahead": ahead}
        schedule = template.schedule(nest, target, point)
        assert not isinstance(schedule, Refusal)
        text = template.generate(nest, target, schedule, "kernel").files[0][1]
        assert text.count("__builtin_prefetch") == 2 * ahead  # x and y; rows share the bias
    assert isinstance(template.schedule(nest, target, {**point, "across": ""}), Refusal)


def test_first_guesses_of_transposed_reads_beyond_the_cache_are_points_of_the_space() -> None:
    b = GraphBuilder()
    b.output(b.op("relu", b.op("permute", b.input(tensor(4096, 4096)), dims=(1, 0))))
    space = Pointwise().space(case_of(b.build(), []).lowered.nest, host_target("x86-64"))
    assert any(dict(seed)["ahead"] for seed in space.seeds)
    for seed in space.seeds:
        assert all(dict(seed)[p.name] in p.choices for p in space.parameters)
