"""`load`, `print_graph`, `export_graph`, `capture`."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import pytest
import torch
from torch import nn

import graph_autofusion as gaf
from graph_autofusion.export import _folded, _ops
from graph_autofusion.report import GroupReport, report_of
from kernel_gen.ir.serialize import graph_from_json
from kernel_gen.runtime.boxes import show_us
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.bundle import write_files
from kernel_gen.runtime.bundle_signing import bundle_files
from kernel_gen.runtime.plan import Plan, Unfused
from kernel_gen.runtime.signer import Signer
from tests.graph_autofusion.quick_plans import SUMMARY, framework_plan, quick_plan


def _model() -> nn.Module:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()


def _bundle(plan: Plan, folder: Path, signer: Signer | None = None) -> Path:
    write_files(bundle_files(plan, signer or Signer.of_user()), folder)
    return folder


@torch.no_grad()
def test_load_with_a_model(gaf_compiler: Compiler, tmp_path: Path) -> None:
    model, x = _model(), torch.randn(4, 8)
    plan = quick_plan(gaf.capture(model, x), gaf_compiler)
    fast = gaf.load(_bundle(plan, tmp_path / "bundle"), model)
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert fast.report.cache == "hit"
    assert fast.plan == plan
    other = torch.randn(9, 8)
    with pytest.warns(gaf.GafWarning, match="other shapes"):
        torch.testing.assert_close(fast(other), model(other))
    assert "other shapes" in fast.report.reason


def test_load_refuses_a_model_without_the_weights(gaf_compiler: Compiler, tmp_path: Path) -> None:
    model, x = _model(), torch.randn(4, 8)
    bundle = _bundle(quick_plan(gaf.capture(model, x), gaf_compiler), tmp_path / "bundle")
    for wrong in (nn.Linear(8, 9), nn.ReLU(), nn.Linear(8, 8).double()):
        with pytest.raises(gaf.InvalidInput, match=f"another model: .* {type(wrong).__name__} has"):
            gaf.load(bundle, wrong.eval())
    renamed = nn.Sequential(nn.Sequential(model[0]), nn.ReLU()).eval()
    assert gaf.load(bundle, renamed).prepare(x).cache == "hit"


@torch.no_grad()
def test_load_alone(gaf_compiler: Compiler, tmp_path: Path) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + y) * 2

    x, y = torch.randn(4, 8), torch.randn(4, 8)
    plan = quick_plan(gaf.capture(program, (x, y)), gaf_compiler)
    alone = gaf.load(_bundle(plan, tmp_path / "bundle"))
    torch.testing.assert_close(alone(x, y), program(x, y))
    for wrong in ((x,), (x, y.double()), (x, y.t().contiguous().t()), (x, torch._neg_view(y))):
        with pytest.raises(gaf.InvalidInput):
            alone(*wrong)


def test_load_refuses_what_is_not_trusted_or_lacks_weights(
    gaf_compiler: Compiler, tmp_path: Path
) -> None:
    plan = quick_plan(gaf.capture(_model(), torch.randn(4, 8)), gaf_compiler)
    with pytest.raises(gaf.InvalidInput, match="pass the model"):
        gaf.load(_bundle(plan, tmp_path / "good"))
    stranger = _bundle(plan, tmp_path / "stranger", Signer.generate())
    with pytest.raises(gaf.UntrustedBundle):
        gaf.load(stranger, _model())
    with pytest.raises(gaf.InvalidInput, match="no bundle"):
        gaf.load(tmp_path / "nowhere", _model())


@pytest.fixture
def plan(gaf_compiler: Compiler) -> Plan:
    return quick_plan(gaf.capture(_model(), torch.randn(4, 8)), gaf_compiler)


def test_print_graph_names_ops_times_and_refusals(plan: Plan) -> None:
    text = io.StringIO()
    gaf.print_graph(plan, text)
    assert f"plan {plan.key}\n" in text.getvalue()  # on one line, to be copied
    assert "fusion rate" in text.getvalue()
    assert "speedup 2.00x" in text.getvalue()
    with pytest.raises(gaf.InvalidInput, match="has no plan"):
        gaf.print_graph(3)


def test_ops_left_alone_for_one_reason_are_one_line(plan: Plan) -> None:
    left = (("linear", "a", "A."), ("exp", "b", "B."), ("linear", "a", "A."), ("add", "a", "A."))
    unfused = tuple(Unfused(*item) for item in left)
    summary = dataclasses.replace(plan.summary, unfused=unfused)
    text = io.StringIO()
    gaf.print_graph(dataclasses.replace(plan, summary=summary), text)
    lines = [line for line in text.getvalue().splitlines() if line.startswith("not fused")]
    assert lines == ["not fused: linear ×2, add: A. [a]", "not fused: exp: B. [b]"]


def _shown(plan: Plan) -> str:
    text = io.StringIO()
    gaf.print_graph(plan, text)
    return text.getvalue()


def test_print_graph_says_first_that_a_slower_plan_is_not_used(plan: Plan) -> None:
    summary = dataclasses.replace(
        plan.summary, improved=False, baseline_us=2e4, measured_us=3_000_000.0
    )
    lines = _shown(dataclasses.replace(plan, summary=summary)).splitlines()
    assert lines[0].startswith("not used, no gain: gaf.optimize runs the model itself, as the plan")
    assert "fusion rate 100%, 20.0 ms by the framework, 3.00 s by the plan" in lines
    assert "speedup" not in "".join(lines)
    report = report_of(dataclasses.replace(plan, summary=summary), "tuned", note="busy")
    assert report.reason.startswith("no gain, the model runs itself: the plan is not faster")
    assert report.reason.endswith(" (busy)")


def test_print_graph_counts_nothing_as_fused_that_the_framework_runs(
    gaf_compiler: Compiler,
) -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Conv2d(8, 8, 3), nn.Tanh()).eval()
    graph = gaf.capture(model, torch.randn(1, 3, 16, 16))
    summary = dataclasses.replace(SUMMARY, baseline_us=6.1)
    plan = framework_plan(graph, gaf_compiler, summary, [(0, 1), (2, 3)])
    assert report_of(plan, "hit").fusion_rate == 1.0  # the library applies the tanh
    shown = _shown(plan)
    assert shown.startswith("not used, no gain")
    assert "no kernel was measured in 0 s: search again with more seconds" in shown
    assert "fusion rate 0%\n" in shown
    assert "speedup" not in shown
    assert shown.count("│ (convolution + tanh) ×2 ") == shown.count("convolution +") == 1


def test_print_graph_keeps_groups_that_were_timed_apart() -> None:
    groups = (GroupReport(("add", "relu"), "flat", None),) * 3
    timed = (GroupReport(("add", "relu"), "flat", 12_345.0),) * 2
    assert [(n, count) for n, _, count in _folded((*groups, *timed, *groups))] == [
        (0, 6),
        (3, 1),
        (4, 1),
    ]
    assert _ops(groups[0], 6) == "(add + relu) ×6"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5 µs"), (9999.0, "9999.0 µs"), (12_345.0, "12.3 ms"), (2e6, "2.00 s")],
)
def test_long_times_are_shown_in_longer_units(value: float, text: str) -> None:
    assert show_us(value) == text
    assert show_us(value, "simulated ") == text.replace(" ", " simulated ")


@pytest.mark.parametrize(
    ("suffix", "start"), [(".dot", b"digraph"), (".svg", b"<"), (".png", b"\x89PNG")]
)
def test_export_graph_draws(plan: Plan, tmp_path: Path, suffix: str, start: bytes) -> None:
    target = gaf.export_graph(plan, tmp_path / f"g{suffix}")
    assert target.read_bytes().startswith(start)


def test_export_graph_writes_json_and_refuses_others(plan: Plan, tmp_path: Path) -> None:
    found = json.loads(gaf.export_graph(plan, tmp_path / "g.json").read_text())
    assert found["key"] == str(plan.key)
    assert found["speedup"] == 2.0
    with pytest.raises(gaf.InvalidInput, match=r"\.dot, \.svg, \.png, \.json"):
        gaf.export_graph(plan, tmp_path / "g.pdf")


def test_capture_gives_structure_without_weights() -> None:
    model, x = _model(), torch.randn(4, 8)
    graph = gaf.capture(model, x)
    assert graph_from_json(graph.to_json()).digest == graph.digest
    with torch.no_grad():
        model[0].weight.fill_(0.123456)
    assert gaf.capture(model, x).digest == graph.digest
    assert "0.123456" not in graph.to_json()
    assert gaf.capture(model, torch.randn(5, 8)).digest != graph.digest
