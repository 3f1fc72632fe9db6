"""Calls that a plan may not answer run in the model, with plans there for the others."""

from __future__ import annotations

import logging
import warnings

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn.utils import parametrize
from torch.utils.flop_counter import FlopCounterMode

from graph_autofusion import programs, runner
from graph_autofusion.module import OptimizedModule
from graph_autofusion.notices import GafWarning
from graph_autofusion.options import Options
from graph_autofusion.resolution import Resolution
from kernel_gen.errors import InvalidInput


@pytest.fixture
def model():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU())


@pytest.fixture
def fast(wrap, model):
    """Wrapped, with its plan running."""
    made = wrap(model)
    with torch.no_grad():
        for _ in range(2):
            made(torch.randn(4, 8))
    assert made.report.cache == "hit"
    return made


def test_gradients(fast, model):
    x = torch.randn(4, 8)
    with pytest.warns(GafWarning, match="gradients"):
        fast(x).sum().backward()
    assert model[0].weight.grad is not None
    model.requires_grad_(False)
    y = fast(x)
    assert not y.requires_grad
    with_grad = x.clone().requires_grad_()
    fast(with_grad).sum().backward()
    assert with_grad.grad is not None
    torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-5)
    model.requires_grad_(True)
    assert fast(x).requires_grad


def test_a_training_step_then_the_plan_with_new_weights(fast, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 8)
    with pytest.warns(GafWarning, match="gradients"):
        fast(x).square().sum().backward()
    optimizer.step()
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_autocast(fast, model):
    x = torch.randn(4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.warns(GafWarning, match="autocast"):
        assert fast(x).dtype == torch.bfloat16
    assert fast(x).dtype == torch.float32


@torch.no_grad()
def test_function_transforms(fast, model):
    x = torch.randn(5, 4, 8)
    with pytest.warns(GafWarning):
        y = torch.func.vmap(fast)(x)
    torch.testing.assert_close(y, model(x))
    with pytest.warns(GafWarning):
        jacobian = torch.func.jacrev(lambda a: fast(a).sum())(x[0])
    assert jacobian.shape == (4, 8)


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_forward_mode_differentiation(wrap, model):
    fast, x = wrap(model), torch.randn(4, 8)
    fast(x)
    fast(x)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        with pytest.warns(GafWarning, match="forward-mode"):
            tangent = forward_ad.unpack_dual(fast(dual)).tangent
        torch.testing.assert_close(tangent, forward_ad.unpack_dual(model(dual)).tangent)
    fast(x)


class Squared(nn.Module):
    def forward(self, weight):
        return weight * weight + 1


@torch.no_grad()
@pytest.mark.filterwarnings("ignore::graph_autofusion.GafWarning")
@pytest.mark.parametrize("known", [False, True], ids=["first call inside", "first call before"])
def test_parametrized_weights_that_are_cached_stay_as_eager_has_them(wrap, known):
    model = nn.Linear(8, 4).eval()
    parametrize.register_parametrization(model, "weight", Squared())
    fast, x = wrap(model, strict=False), torch.randn(3, 8)
    if known:
        fast(x)
        fast(x)
    with parametrize.cached():
        torch.testing.assert_close(fast(x), model(x))
        model.parametrizations.weight.original.add_(1.0)
        torch.testing.assert_close(fast(x), model(x))
        torch.testing.assert_close(fast(x), model(x))
    torch.testing.assert_close(fast(x), model(x))


@torch.no_grad()
def test_tensors_can_be_swapped(wrap):
    model, x = nn.Linear(8, 4).eval().requires_grad_(False), torch.randn(3, 8)
    fast = wrap(model)
    fast(x)
    fast(x)
    for _ in range(2):
        other = nn.Parameter(torch.randn(4, 8), requires_grad=False)
        torch.utils.swap_tensors(model.weight, other)
        torch.testing.assert_close(fast(x), model(x))
    y = torch.randn(3, 8)
    torch.utils.swap_tensors(x, y)
    torch.testing.assert_close(fast(x), model(x))


@torch.no_grad()
@pytest.mark.parametrize(
    "weight",
    [
        lambda: torch.eye(8).to_sparse(),
        lambda: torch.eye(8).to_sparse_csr(),
        lambda: torch.eye(8, dtype=torch.complex64),
        lambda: torch.ones(8, 8, device="meta"),
        lambda: torch.quantize_per_tensor(torch.eye(8), 0.1, 0, torch.qint8),
    ],
    ids=["sparse", "csr", "complex", "meta", "quantised"],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support", "ignore:torch.quantize_per_tensor")
def test_weights_that_no_plan_can_hold(wrap, weight):
    class Holding(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", weight())

        def forward(self, x):
            w = self.weight
            if w.is_meta:
                return x + w.shape[0]
            w = w.dequantize() if w.is_quantized else w
            return (w @ x.to(w.dtype)).abs()

    model, x = Holding(), torch.randn(8, 3)
    fast = wrap(model, strict=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GafWarning)
        for _ in range(2):
            torch.testing.assert_close(fast(x), model(x))


@torch.no_grad()
def test_a_fault_of_our_own_breaks_no_program(wrap, model, monkeypatch):
    """Whichever step fails, and in whatever way, the model's result comes with one warning."""
    x = torch.randn(4, 8)

    def fails(*args, **kwargs):
        raise KeyError("a fault")

    for place, name in (
        (programs, "capture"),
        (programs, "ModelGuard"),
        (runner, "describe_call"),
        (runner, "hooks_reason"),
    ):
        fast = wrap(model, strict=False)
        with monkeypatch.context() as patched:
            patched.setattr(place, name, fails)
            with pytest.warns(GafWarning, match="KeyError: 'a fault'"):
                torch.testing.assert_close(fast(x), model(x))
            with pytest.raises(KeyError):
                wrap(model)(x)


@torch.no_grad()
def test_the_warning_points_at_the_callers_line(wrap, model):
    fast = wrap(model, strict=False)
    fast.wrapped.register_forward_hook(lambda *_: None)
    for call in (lambda: fast(torch.randn(4, 8)), lambda: fast.prepare(torch.randn(4, 8))):
        fast._gaf_runner._notices._told.clear()
        with pytest.warns(GafWarning) as told:
            call()
        assert told[0].filename == __file__


@torch.no_grad()
def test_modes_that_watch_operators_see_them(fast):
    with FlopCounterMode(display=False) as counter, pytest.warns(GafWarning):
        fast(torch.randn(4, 8))
    assert counter.get_total_flops() == 2 * 4 * 8 * 8


@torch.no_grad()
def test_hooks_are_called(fast, model):
    seen, x = [], torch.randn(4, 8)
    handles = [
        model[1].register_forward_hook(lambda m, a, y: seen.append("inner")),
        fast.register_forward_hook(lambda m, a, y: seen.append("outer")),
    ]
    with pytest.warns(GafWarning, match="hooks"):
        fast(x)
    assert seen == ["inner", "outer"]
    for handle in handles:
        handle.remove()
    fast(x)
    assert seen == ["inner", "outer"]
    everywhere = nn.modules.module.register_module_forward_hook(lambda m, a, y: seen.append("all"))
    with pytest.warns(GafWarning, match="hooks"):
        fast(x)
    everywhere.remove()
    assert "all" in seen


@torch.no_grad()
def test_an_exported_programs_own_hooks_are_no_hindrance_and_a_users_are(wrap, model):
    seen, x = [], torch.randn(4, 8)
    exported = torch.export.export(model, (x,)).module()
    fast = wrap(exported)
    for _ in range(2):
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert fast.report.cache == "hit"
    handle = exported.register_forward_hook(lambda m, a, y: seen.append("hook"))
    with pytest.warns(GafWarning, match="hooks"):
        fast(x)
    assert seen == ["hook"]
    handle.remove()
    fast(x)
    assert seen == ["hook"]


@torch.no_grad()
@pytest.mark.filterwarnings("ignore::graph_autofusion.GafWarning")
def test_an_exported_program_refuses_what_it_was_not_exported_for(wrap, model):
    size = torch.export.Dim("size", min=2, max=5)
    program = torch.export.export(model, (torch.randn(4, 8),), dynamic_shapes=({0: size},))
    fast = wrap(program.module(), strict=False)
    for rows in (4, 5):
        fast(torch.randn(rows, 8))
        assert fast.report.cache == "hit"
    for wrong in (torch.randn(6, 8), torch.randn(4, 9)):
        with pytest.raises(AssertionError, match="Guard failed"):
            fast(wrong)


@torch.no_grad()
@pytest.mark.parametrize(
    "odd",
    [
        lambda x: torch._neg_view(x),
        lambda x: torch._efficientzerotensor(tuple(x.shape)),
        lambda x: x.to_sparse().to_dense().to_mkldnn(),
    ],
    ids=["negated", "zero", "mkldnn"],
)
def test_tensors_whose_memory_is_not_their_value(wrap, odd):
    model = nn.Sequential(nn.ReLU())
    fast, x = wrap(model), torch.randn(4, 8)
    for _ in range(2):
        fast(x)
    with pytest.warns(GafWarning, match="an input is"):
        y = fast(odd(x))
    dense = y.to_dense() if y.layout is torch._mkldnn else y
    expected = model(odd(x))
    expected = expected.to_dense() if expected.layout is torch._mkldnn else expected
    torch.testing.assert_close(dense, expected)


@torch.no_grad()
def test_lazily_conjugated_inputs(wrap):
    fast = wrap(lambda z: torch.view_as_real(z * 2), strict=False)
    z = torch.randn(4, dtype=torch.complex64)
    with pytest.warns(GafWarning, match="conjugated"):
        torch.testing.assert_close(fast(z.conj()), torch.view_as_real(z.conj() * 2))


@torch.no_grad()
def test_a_lazily_negated_weight(wrap):
    model = nn.Sequential(nn.Linear(8, 8))
    fast, x = wrap(model, strict=False), torch.randn(4, 8)
    fast(x)
    model[0].weight.data = torch._neg_view(model[0].weight.data)
    with pytest.warns(GafWarning, match="negated lazily"):
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_an_argument_that_is_written_and_given_twice(wrap):
    def program(x, y):
        x.add_(1)
        return x * y

    fast = wrap(program, strict=False)
    fast(torch.ones(4), torch.ones(4))
    x, twin = torch.ones(4), torch.ones(4)
    with pytest.warns(GafWarning, match="one tensor is given for several arguments"):
        torch.testing.assert_close(fast(x, x), program(twin, twin))
    torch.testing.assert_close(fast(x, x), program(twin, twin))
    torch.testing.assert_close(x, twin)


def test_compiling_the_wrapper_sees_the_model(fast, model):
    with torch.no_grad():
        compiled = torch.compile(fast, backend="eager", fullgraph=True)
        x = torch.randn(4, 8)
        torch.testing.assert_close(compiled(x), model(x))


@torch.no_grad()
def test_disabled_while_running(fast, model, monkeypatch):
    seen, x = [], torch.randn(4, 8)
    original = nn.Sequential.forward
    monkeypatch.setattr(nn.Sequential, "forward", lambda s, x: seen.append(1) or original(s, x))
    fast(x)
    assert seen == []
    monkeypatch.setenv("GAF_DISABLE", "1")
    fast(x)
    assert seen == [1]


@torch.no_grad()
def test_strict_raises_what_would_be_a_fallback(wrap):
    model = nn.ReLU()
    with pytest.raises(InvalidInput, match="plain CPU tensor"):
        wrap(model).prepare(torch.ones(2, 2).to_sparse())
    loose = wrap(model, strict=False)
    with pytest.warns(GafWarning, match="plain CPU tensor"):
        assert loose.prepare(torch.ones(2, 2).to_sparse()).cache == "fallback"


class Narrow(nn.Module):
    """Takes rows of eight without a negative sum."""

    def forward(self, x):
        if x.sum().item() < 0:  # what torch.export cannot follow
            raise ValueError("negative")
        return x @ torch.ones(8, 8)


@pytest.mark.parametrize("strict", [True, False])
@torch.no_grad()
def test_example_inputs_that_the_model_does_not_take_are_refused(wrap, strict):
    fast = wrap(Narrow(), strict=strict)
    for wrong in (torch.ones(2, 9), -torch.ones(2, 8)):
        with pytest.raises(InvalidInput, match=r"the model does not take these inputs: .*Error: "):
            fast.prepare(wrong)


@torch.no_grad()
def test_a_call_that_the_model_refuses_raises_the_models_error_alone(wrap, model, caplog):
    fast = wrap(model, strict=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", GafWarning)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
                fast(torch.randn(3, 7))
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert logging.getLogger("torch._subclasses.fake_tensor").filters == []
    assert fast(torch.randn(3, 8)).shape == (3, 8)


@torch.no_grad()
def test_example_inputs_that_only_a_capture_cannot_take_run_in_the_model(wrap):
    fast = wrap(Narrow(), strict=False)
    with pytest.warns(GafWarning, match=r"torch\.export cannot capture Narrow"):
        assert fast.prepare(torch.ones(2, 8)).cache == "fallback"


class Compatible:
    """Offers a plan made for another machine; `faster` says what its trial run is to find."""

    def __init__(self, source, monkeypatch, faster):
        self.source, self.accepted = source, None
        times = iter((1.0, 2.0) if faster else (2.0, 1.0))
        monkeypatch.setattr(programs, "_least_seconds", lambda call: (call(), next(times))[1])

    def resolve(self, graph, accepts):
        plan = self.source.resolve(graph, accepts).plan
        self.accepted = accepts(plan)
        if self.accepted:
            return Resolution(plan, "compatible")
        return Resolution(None, "fallback", "no plan is known", is_asked_for=True)

    def follow(self, job, graph, accepts):
        return None


@torch.no_grad()
@pytest.mark.parametrize("faster", [True, False])
def test_a_compatible_plan_is_timed_once_before_it_is_used(source, model, monkeypatch, faster):
    compatible = Compatible(source, monkeypatch, faster)
    fast = OptimizedModule(model, Options(strict=True), compatible)
    x = torch.randn(4, 8)
    for _ in range(3):  # a second trial run would exhaust the times
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert compatible.accepted is faster
    assert fast.report.cache == ("compatible" if faster else "fallback")


class Counting(nn.Module):
    """Gives another result in each call."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def test_a_model_that_counts_its_calls_is_not_captured_again_and_again(wrap, monkeypatch):
    captured = []
    original = programs.capture
    monkeypatch.setattr(
        programs, "capture", lambda *a, **k: captured.append(1) or original(*a, **k)
    )
    fast, x = wrap(Counting(), strict=False), torch.ones(3)
    with torch.no_grad():
        with pytest.warns(GafWarning, match="changes its attributes"):
            fast(x)
        for number in range(2, 8):
            torch.testing.assert_close(fast(x), x * number)
    assert len(captured) == 3
    assert fast.report.cache == "fallback"


class Caching(nn.Module):
    """Fills a cache in its first call."""

    def __init__(self):
        super().__init__()
        self.length = 0

    def forward(self, x):
        if self.length < x.shape[-1]:
            self.length = x.shape[-1]
        return x * self.length


def test_a_model_that_fills_a_cache_is_captured_once_it_has(wrap, source):
    model = Caching()
    fast, x = wrap(model, strict=False), torch.ones(3)
    with torch.no_grad():
        with pytest.warns(GafWarning, match="changes its attributes"):
            fast(x)
        for _ in range(3):
            torch.testing.assert_close(fast(x), x * 3)
    assert len(source.asked) == 1
    assert fast.report.cache == "hit"
