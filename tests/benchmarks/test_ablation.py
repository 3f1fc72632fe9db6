"""Strategies are real restrictions of the same search; tables and plots say what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import graph_autofusion as gaf
from benchmarks.ablation import __main__ as command
from benchmarks.ablation import vector
from benchmarks.ablation.kept import Kept, KeptArchive
from benchmarks.ablation.measure import Ablation, Plan, Row, ablate
from benchmarks.ablation.programs import PROGRAMS, Program
from benchmarks.ablation.simulated import ablate_simulated, or_narrower
from benchmarks.ablation.strategies import (
    AUTOMATIC,
    BY_ELEMENT,
    NONE,
    WITH_PRODUCTS,
    WITH_REDUCTIONS,
    Strategy,
)
from kernel_gen.codegen.ascend.kernel.vector_tiling import LARGEST
from kernel_gen.codegen.ascend.registry import templates as npu_templates
from kernel_gen.codegen.ascend.target import npu_target
from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.candidates import candidates
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.records import Failure, Stage, Trial
from kernel_gen.runtime.host import host_target
from tuner.nests.search import NestSearch


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x * 2).tanh()
        z: torch.Tensor = self.linear(self.norm(y)).sigmoid() + x
        return z


def fused_sets(strategy: Strategy) -> list[set[str]]:
    """Computing ops of each candidate group that has more than one."""
    graph = gaf.capture(Small().eval().requires_grad_(False), (torch.randn(4, 8),))
    ruled = apply_rules(graph, load_rules(strategy.rules))
    target = host_target()
    found = candidates(ruled.program, tuple(templates(target)), target, ruled.constraints)
    skipped = (OpKind.SOURCE, OpKind.VIEW)
    groups = [
        [ruled.program.nodes[i].op for i in c.group.nodes
         if spec(ruled.program.nodes[i].op).kind not in skipped]
        for c in found.groups
    ]  # fmt: skip
    return [set(ops) for ops in groups if len(ops) > 1]


def test_none_leaves_every_op_alone_but_has_a_kernel_for_each() -> None:
    assert not fused_sets(NONE)


@pytest.mark.parametrize(
    ("strategy", "allowed", "new"),
    [
        (BY_ELEMENT, {"mul", "relu", "tanh", "sigmoid", "add"}, {"relu", "tanh"}),
        (
            WITH_REDUCTIONS,
            {"mul", "relu", "tanh", "sigmoid", "add", "layer_norm"},
            {"tanh", "layer_norm"},
        ),
        (
            WITH_PRODUCTS,
            {"mul", "relu", "tanh", "sigmoid", "add", "layer_norm", "linear"},
            {"linear", "sigmoid"},
        ),
    ],
)
def test_a_strategy_fuses_its_kinds_and_no_others(
    strategy: Strategy, allowed: set[str], new: set[str]
) -> None:
    found = fused_sets(strategy)
    assert all(ops <= allowed for ops in found)
    assert any(new <= ops for ops in found)


def test_automatic_is_the_plain_search_and_programs_have_the_articles_figures() -> None:
    assert AUTOMATIC.rules is None
    for program in PROGRAMS.values():
        assert set(program.article) == {strategy.name for strategy in program.strategies}
    assert PROGRAMS["llama"].figure(1000.0) == pytest.approx(32.0)
    assert PROGRAMS["resnet"].figure(8e6) == pytest.approx(1.0)


def rows() -> tuple[Row, ...]:
    return (
        Row("none", 2000.0, 64.0, 45.0, kernels=10),
        Row("automatic", 1000.0, 32.0, 27.0, kernels=3, fusion_rate=0.9),
        Row("+ matmul", None, None, 28.0, missing="Unavailable: no compiler"),
    )


def test_the_table_puts_the_articles_figures_beside_ours() -> None:
    text = command.markdown([Ablation("p", "A program", "ms per token", "cpu", rows(), 3000.0)])
    assert "| automatic | 32 | 2.00× | 3 | 90% | 27 | 1.67× |" in text
    assert "+ matmul: Unavailable: no compiler" in text
    assert "3.00 ms per call" in text


def test_equal_figures_give_equal_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    found = [Ablation("p", "A program", "images/s", "ascend-sim:910b3", rows())]
    for name in ("a", "b"):
        command._write(found, tmp_path / name, "ascend-sim:910b3", no_plots=False)
    stem = "ablation-ascend-sim-910b3"
    for suffix in (".svg", ".png"):
        first, second = ((tmp_path / n / f"{stem}{suffix}").read_bytes() for n in ("a", "b"))
        assert first == second
    assert json.loads((tmp_path / "a" / f"{stem}.json").read_text(encoding="utf-8"))["programs"]


def test_ops_without_a_kernel_on_a_simulated_device_are_named_and_counted() -> None:
    row = Row("none", 2000.0, 64.0, 45.0, on_host=("attention", "sort", "attention"))
    text = command.markdown([Ablation("p", "A program", "images/s", "ascend-sim:910b3", (row,))])
    assert "none: on the host, in no time: attention (2), sort (1)." in text


def test_gains_of_vector_programs_are_against_fused_and_missing_plans_are_said() -> None:
    found = [vector.Row("tower", 1, 4.0, 10.0, 6.0, 9, 0), vector.Row("x", 0, 0.0, 5.0, None, 9, 2)]
    text = vector.markdown(found)
    assert "| tower | 1 | 4.00 | 10.00 | 2.50× | 6.00 | 1.50× |" in text
    assert "| x | no plan was right |" in text


def test_a_search_on_an_npu_begins_with_the_cheapest_and_with_the_largest_tile() -> None:
    target = npu_target("910b3")
    made = lower_all(gaf.capture(torch.nn.Softmax(-1), (torch.randn(64, 400),)))
    template = next(t for t in npu_templates(target) if t.refuse(made, target) is None)
    cheapest, largest = (dict(seed) for seed in template.space(made, target).seeds)
    assert largest == {**cheapest, "lanes": LARGEST}
    assert largest["cores"] == target.cores
    begun = NestSearch(made, target, [template], lambda *_: 1.0).propose(2)
    assert [dict(p.point) for p in begun] == [cheapest, largest]


def lower_all(graph: Graph) -> LoopNest:
    made = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert isinstance(made, Lowered)
    return made.nest


def trial(number: int) -> Trial:
    return Trial("nest", number, "cube", (("lanes", 0),), Failure(Stage.CHECK, "race", "seen"))


def test_an_ablation_that_was_cut_goes_on_with_its_rows_and_kernels(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "program.jsonl"
    kept = Kept(path)
    assert kept.begin("none") == 0
    KeptArchive(kept).add_trials([trial(0), trial(1)])
    kept.add_row(rows()[0])
    assert kept.begin("automatic") == 2
    KeptArchive(kept).add_trials([trial(2)])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"entry":{"kind":"Row"')  # cut as it was written
    for _ in range(2):
        again = Kept(path, resume=True)
        assert again.rows == {"none": rows()[0]}
        assert not again.is_missing("none")
        assert again.is_missing("automatic")
        assert again.begin("automatic") == 2  # its budget counts from there
        assert KeptArchive(again).resumed() == [trial(0), trial(1), trial(2)]
    kept.add_row(rows()[2])  # a device that was away: tried again
    assert Kept(path, resume=True).is_missing(rows()[2].strategy)
    assert not Kept(path).rows


@pytest.mark.slow
@pytest.mark.xdist_group("simulated")
def test_a_wider_strategy_never_loses_on_a_simulated_device() -> None:
    program = Program(
        "small", "Small", lambda: (Small(), (torch.randn(4, 8),)), (NONE, BY_ELEMENT, AUTOMATIC),
        "us", float, {"none": 1.0, "elementwise": 1.0, "automatic": 1.0},
    )  # fmt: skip
    how = Plan("ascend-sim:910b3", 100.0, trials=4)
    rows = ablate_simulated(program, how, lambda _: None).rows
    assert all(row.us is not None for row in rows)
    whole = [row.us for row in rows if not row.on_host]  # what the host runs takes no time
    assert len(whole) >= 2
    assert whole == sorted(whole, key=lambda us: -(us or 0.0))


@pytest.mark.slow
def test_a_program_is_tuned_under_each_strategy_and_checked(tmp_path: Path) -> None:
    program = Program(
        "small",
        "small",
        lambda: (Small(), (torch.randn(4, 8),)),
        (NONE, AUTOMATIC),
        "ms",
        lambda us: us / 1000,
        {"none": 2.0, "automatic": 1.0},
    )
    how = Plan(budget=60.0, store=f"sqlite:///{tmp_path}/store.sqlite", rounds=2, trials=8)
    told: list[str] = []
    found = ablate(program, how, told.append)
    assert [row.strategy for row in found.rows] == ["none", "automatic"]
    assert all(row.us and not row.wrong and not row.missing for row in found.rows), found.rows
    assert found.rows[0].fusion_rate == 0.0
    assert told == ["small: none", "small: automatic", "small: timed"]


@pytest.mark.parametrize(
    ("us", "on_host", "kept"),
    [
        (90.0, ("sort",), True),
        (110.0, ("sort",), False),
        (50.0, ("sort", "convolution"), False),
        (110.0, (), True),
    ],
    ids=["faster", "slower", "faster with less on the device", "slower with more on it"],
)
def test_a_strategy_never_loses_to_a_narrower_one(
    us: float, on_host: tuple[str, ...], kept: bool
) -> None:
    narrower = Row("none", 100.0, 1.0, 420.0, kernels=9, on_host=("sort",))
    row = Row("elementwise", us, 2.0, 480.0, kernels=5, on_host=on_host)
    found = or_narrower(row, narrower)
    assert (found.strategy, found.article) == ("elementwise", 480.0)
    assert found.us == (us if kept else 100.0)
    assert found.kernels == (5 if kept else 9)
