"""Reductions and normalisations against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_gen.frontend import capture
from kernel_gen.frontend.inputs import to_numpy
from kernel_gen.frontend.torch_batch_norm import batch_norm_calls
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.ir.evaluate import evaluate
from tests.frontend.as_eager import assert_as_eager, ops, targets

GENERATOR = torch.Generator().manual_seed(3)
X = torch.randn(3, 4, 5, generator=GENERATOR)
I = torch.randint(-50, 50, (3, 4), generator=GENERATOR, dtype=torch.int32)  # noqa: E741

OF_FLOATS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sum": lambda x: x.sum(),
    "sum_dims": lambda x: x.sum((0, -1), keepdim=True),
    "sum_double": lambda x: x.sum(1, dtype=torch.float64),
    "prod": lambda x: (x.prod(), x.prod(1)),
    "mean": lambda x: (x.mean(), x.mean((0, 2)), x.mean(-1, keepdim=True)),
    "mean_double": lambda x: x.mean(1, dtype=torch.float64),
    "amax": lambda x: (x.amax(), x.amax((0, 2)), x.amin(-1, keepdim=True)),
    "max": lambda x: (x.max(), x.min()),
    "max_dim": lambda x: (*x.max(1), *x.min(-1, keepdim=True)),
    "aminmax": lambda x: torch.aminmax(x, dim=1),
    "argmax": lambda x: (x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True)),
    "var": lambda x: (x.var(), x.var(1), x.var((0, 2), correction=0), x.std(-1, keepdim=True)),
    "var_unbiased": lambda x: (x.var(1, unbiased=False), x.std(unbiased=False)),
    "var_mean": lambda x: torch.var_mean(x, (0, 1)),
    "any_all": lambda x: ((x > 1).any(), (x > 1).all(1), x.any(0), x.all((0, 1))),
    "norm": lambda x: (x.norm(), x.norm(dim=1), x.norm(p=1, dim=0)),
    "linalg_norm": lambda x: (torch.linalg.norm(x), torch.linalg.norm(x, 1, -1, keepdim=True)),
    "linalg_norm_of_lines": lambda x: torch.linalg.norm(x, float("-inf"), (1,)),
    "frobenius": lambda x: (torch.linalg.matrix_norm(x), torch.linalg.norm(x, "fro", (0, 2))),
    "vector_norm": lambda x: torch.linalg.vector_norm(x, dim=(0, 1), ord=float("inf")),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "logsumexp": lambda x: x.logsumexp(1),
    "softmax": lambda x: (x.softmax(-1), x.log_softmax(0), F.softmin(x, 1)),
    "softmax_double": lambda x: x.softmax(1, dtype=torch.float64),
    "count_nonzero": lambda x: (x > 0).count_nonzero(),
    "cosine": lambda x: F.cosine_similarity(x, x + 1, dim=1),
    "mse": lambda x: F.mse_loss(x, x * 2),
    "l1": lambda x: F.l1_loss(x, x * 2),
    "huber": lambda x: F.huber_loss(x, x * 2),
    "nansum": lambda x: x.nansum(1),
    "zero_d": lambda x: (x[0, 0, 0].sum(), x[0, 0, 0].softmax(0), x[0, 0, 0].amax()),
}


@pytest.mark.parametrize("name", sorted(OF_FLOATS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_reduction_of_floats(name: str, dtype: torch.dtype) -> None:
    # These have no composite: eager has one rounding where the primitives have several.
    exact = name not in (
        "cosine",
        "huber",
        "logsumexp",
        "norm",
        "linalg_norm",
        "frobenius",
        "vector_norm",
        "normalize",
        "mse",
        "var_mean",
    )
    captured = assert_as_eager(OF_FLOATS[name], (X.to(dtype),), exact=exact)
    assert not targets(captured)


def test_reductions_of_integers_widen() -> None:
    def program(i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return i.sum(), i.sum(1), i.prod(1), i.amax(0), i.argmin(1), i.any(1), i.max(1)[0]

    captured = assert_as_eager(program, (I,))
    assert not targets(captured)
    assert_as_eager(lambda b: (b.sum(), b.sum(0), b.all(), b.amax(0)), (I > 0,))
    assert_as_eager(lambda u: (u.any(0), u.all(0), u.sum()), (I.to(torch.uint8),))


def test_specials_go_through_reductions() -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[nan, 1.0, inf], [-inf, -inf, -inf], [inf, 1.0, 2.0], [0.0, -inf, 1.0]])

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.softmax(-1), x.amax(1), x.argmax(1), x.max(1)[1], x.sum(1), x.mean(1)

    assert not targets(assert_as_eager(program, (x,)))


def test_nothing_to_reduce() -> None:
    captured = assert_as_eager(lambda x: (x.sum(1), x.prod(1), x.mean(0)), (torch.empty(3, 0),))
    assert not targets(captured)


def test_only_the_used_half_of_max_is_made() -> None:
    assert ops(capture(lambda x: x.max(1)[1] + 1, (X,))) == {"argmax": 1, "add": 1}


NORMS: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "layer_norm": ("layer_norm", lambda x: F.layer_norm(x, (4, 5))),
    "layer_norm_affine": (
        "layer_norm",
        lambda x: F.layer_norm(x, (5,), torch.arange(5.0), torch.ones(5), 1e-3),
    ),
    "rms_norm": ("rms_norm", lambda x: F.rms_norm(x, (5,))),
    "rms_norm_weight": ("rms_norm", lambda x: F.rms_norm(x, (5,), torch.arange(5.0), 1e-6)),
    "group_norm": ("group_norm", lambda x: F.group_norm(x, 2, torch.arange(4.0), torch.ones(4))),
    "batch_norm": (
        "batch_norm",
        lambda x: F.batch_norm(x, torch.arange(4.0), torch.arange(1.0, 5), torch.ones(4)),
    ),
}


@pytest.mark.parametrize("name", sorted(NORMS))
def test_norm_is_one_node(name: str) -> None:
    op, function = NORMS[name]
    captured = assert_as_eager(function, (X,))
    assert ops(captured)[op] == 1
    assert not targets(captured)


def test_gradients_of_a_group_norm_take_its_statistics() -> None:
    def program(x: torch.Tensor, w: torch.Tensor, given: torch.Tensor) -> Any:
        return torch.func.vjp(lambda x, w: F.group_norm(x, 2, w), x, w)[1](given)

    captured = assert_as_eager(program, (X, torch.arange(4.0), X + 1), exact=False)
    assert not targets(captured)


def test_rms_norm_without_eps_uses_the_computing_types_epsilon() -> None:
    assert_as_eager(lambda x: F.rms_norm(x, (5,)), ((X * 1e-3).bfloat16(),))


BATCHES = {
    "rows": (lambda: nn.BatchNorm1d(5), X.flatten(0, 1) + 3),
    "signals": (lambda: nn.BatchNorm1d(4, momentum=0.25), X * 1e3),
    "images": (lambda: nn.BatchNorm2d(3, eps=0.1), X.reshape(4, 3, 1, 5)),
    "channels_last": (
        lambda: nn.BatchNorm2d(4),
        torch.randn(2, 4, 3, 5).to(memory_format=torch.channels_last),
    ),
    "f64": (lambda: nn.BatchNorm1d(4).double(), X.double()),
    "bf16": (lambda: nn.BatchNorm1d(4).bfloat16(), X.bfloat16()),
    "mixed": (lambda: nn.BatchNorm1d(4), X.bfloat16()),
    "no_parameters": (lambda: nn.BatchNorm1d(4, affine=False), X),
}


@pytest.mark.parametrize("name", sorted(BATCHES))
def test_batch_norm_in_training_is_one_norm_of_statistics(name: str) -> None:
    make, x = BATCHES[name]
    module = make()
    captured = capture(module, (x,))
    assert not targets(captured)
    assert {op: n for op, n in ops(captured).items() if op in ("mean", "var", "batch_norm")} == {
        "mean": 1, "var": 1, "batch_norm": 1,
    }  # fmt: skip
    inputs = captured.bind(module, [x])
    found = TorchProgram(captured.graph)(*inputs)
    exact = evaluate(captured.graph, [to_numpy(tensor) for tensor in inputs])
    with torch.no_grad():
        want = module(x)
    state = module.state_dict()
    outputs = captured.graph.outputs
    written = [captured.graph.inputs[o.mutates].name for o in outputs if o.mutates is not None]
    assert set(written) == {"running_mean", "running_var", "num_batches_tracked"}
    expected = [*(state[name] for name in written), want]
    near = {"rtol": 1e-2, "atol": 1e-2} if x.dtype is torch.bfloat16 else {}
    for got, number, tensor in zip(found, exact, expected, strict=True):
        torch.testing.assert_close(got, tensor, **near)
        torch.testing.assert_close(torch.from_numpy(number).to(tensor), tensor, **near)


def test_batch_norm_writes_statistics_that_are_arguments() -> None:
    """Nothing in the operator's schema says so."""

    def model(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, mean, var, training=True)

    captured = assert_as_eager(model, (X, torch.zeros(4), torch.ones(4)), exact=False)
    assert [m.input for m in captured.mutations] == [1, 2]
    assert not targets(captured)


def test_statistics_of_a_batch_norm_are_torchs_one_call() -> None:
    """The baseline is eager's call: its mean and variance alone take several times as long."""
    captured = capture(nn.BatchNorm1d(4), (X,))
    (found,) = batch_norm_calls(captured.graph)
    assert sorted(captured.graph.nodes[n].op for n in found.nodes) == ["batch_norm", "mean", "var"]
    other = capture(lambda x: F.batch_norm(x, x.mean((0, 2)), x.var((0, 2))), (X,))
    assert not list(batch_norm_calls(other.graph))  # an unbiased variance


@pytest.mark.parametrize("tracked", [False, True])
def test_instance_norm(tracked: bool) -> None:
    module = nn.InstanceNorm1d(4, affine=True, track_running_stats=tracked)
    captured = assert_as_eager(module, (X,), exact=False, reference=not tracked)
    assert not targets(captured)


def test_cross_entropy() -> None:
    labels = torch.tensor([1, 0, -100])
    captured = assert_as_eager(F.cross_entropy, (X[:, :, 0], labels), exact=False)
    assert ops(captured)["log_softmax"] == 1
    assert not targets(captured)
