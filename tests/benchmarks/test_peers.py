"""Each contender gives the program's results; one that is not installed is skipped by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from benchmarks.suite.correctness import judge
from benchmarks.suite.peers import CONTENDERS, OURS, builder
from benchmarks.suite.peers.work import Work
from benchmarks.suite.reference import reference
from benchmarks.suite.workloads import Case
from benchmarks.suite.workloads.losses import adam_step, cross_entropy

PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "xla": "jax"}


class Small(torch.nn.Module):
    """Norm, product, activation, residual, softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = torch.nn.LayerNorm(32), torch.nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = F.gelu(self.linear(self.norm(x))) + x
        return torch.softmax(y, -1), y.sum()


def small() -> Case:
    torch.manual_seed(0)
    return Small().eval().requires_grad_(False), (torch.randn(6, 32),), "eager"


def adam() -> Case:
    torch.manual_seed(0)
    return (
        adam_step,
        (torch.randn(64), torch.zeros(64), torch.zeros(64), torch.randn(64), torch.tensor(3.0)),
        "eager",
    )


def loss() -> Case:
    torch.manual_seed(0)
    return cross_entropy, (torch.randn(4, 40), torch.randint(0, 40, (4,))), "eager"


# Loading Inductor takes as long as compiling with it, and so do the processes that it starts.
INDUCTOR = (pytest.mark.slow, pytest.mark.xdist_group("inductor"))


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Contenders change what a process of their own may change."""
    monkeypatch.setenv("GAF_BENCH_BUDGET", "0")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", False)


@pytest.mark.parametrize(
    "contender",
    [
        pytest.param(name, marks=INDUCTOR if name.startswith("inductor") else ())
        for name in CONTENDERS
        if name != OURS
    ],
)
@pytest.mark.parametrize("load", [small, adam, loss])
@pytest.mark.filterwarnings("ignore")
def test_a_contender_gives_the_programs_results(contender: str, load: Any) -> None:
    if contender == "inductor-max" and load is not small:
        pytest.skip("the modes of Inductor differ in what they try, not in what they build")
    if contender in PACKAGES and importlib.util.find_spec(PACKAGES[contender]) is None:
        pytest.skip(f"{PACKAGES[contender]} is not installed")
    with torch.no_grad():
        expected, _ = reference(load)
        model, inputs, _ = load()
        built = builder(contender)(Work(model, inputs, expected.mutated, threads=1))
        results = built.results(built.run())
        verdict = judge(results, expected.expected)
        built.run()
    assert not verdict.wrong
    assert len(results) == len(expected.expected.eager)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:running in the framework")  # a busy machine measures nothing
def test_ours_reports_its_kernels(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAF_STORE", f"sqlite:///{tmp_path}/store.sqlite")
    monkeypatch.setenv("GAF_BENCH_BUDGET", "3")
    with torch.no_grad():
        expected, _ = reference(small)
        model, inputs, _ = small()
        built = builder("autofusion")(Work(model, inputs, expected.mutated, threads=1))
        verdict = judge(built.results(built.run()), expected.expected)
    assert not verdict.wrong
    assert built.facts["cache"] == "tuned"
    assert all(kernel["nbytes"] > 0 for kernel in built.facts["kernels"])


def test_openvino_cannot_send_messages() -> None:
    """Its package reports each import where its telemetry can be imported."""
    if importlib.util.find_spec("openvino") is None:
        pytest.skip("openvino is not installed")
    importlib.import_module("benchmarks.suite.peers.openvino_peer")
    from openvino.tools.ovc import telemetry_utils

    assert telemetry_utils.tm.__name__.endswith("telemetry_stub")


def test_an_unknown_contender_is_an_error() -> None:
    with pytest.raises(KeyError):
        builder("tvm")
