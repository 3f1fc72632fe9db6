"""An OptimizedModule behaves as its model does, plan or no plan."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest
import torch
from torch import nn

from graph_autofusion.module import OptimizedModule
from graph_autofusion.notices import GafWarning
from graph_autofusion.options import Options
from graph_autofusion.resolution import Resolution
from kernel_gen.errors import InvalidInput, Unavailable


class NoPlan:
    """A source that knows nothing."""

    def follow(self, job, graph, accepts):
        return None

    def resolve(self, graph, accepts):
        return Resolution(None, "fallback", "nothing is known", is_asked_for=True)


class Broken(NoPlan):
    def resolve(self, graph, accepts):
        raise Unavailable("the tuner is not there")


def _model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)).eval()


def _wrap(model, source=None, **options):
    return OptimizedModule(model, Options(**options), source=source or NoPlan())


def test_it_is_a_module_with_the_models_state():
    model = _model()
    fast = _wrap(model)
    assert isinstance(fast, nn.Module)
    assert list(fast.state_dict()) == list(model.state_dict())
    assert dict(fast.named_parameters()).keys() == dict(model.named_parameters()).keys()
    fast.load_state_dict({k: torch.zeros_like(v) for k, v in model.state_dict().items()})
    assert model[0].weight.abs().max() == 0


def test_conversion_and_modes_reach_the_model():
    model = _model()
    fast = _wrap(model)
    assert fast.to(torch.float64) is fast
    assert model[0].weight.dtype == torch.float64
    fast.train()
    assert model.training
    assert model[1].training
    assert fast.training
    fast.eval()
    assert not model[1].training
    fast.requires_grad_(False)
    assert not model[0].weight.requires_grad


def test_attributes_are_the_models():
    model = _model()
    model.note = "a"
    fast = _wrap(model)
    assert fast.note == "a"
    fast.note = "b"
    assert model.note == "b"
    del fast.note
    assert not hasattr(model, "note")
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = fast.nothing_like_it
    assert len(fast) == 3
    assert fast[0] is model[0]
    assert list(fast) == list(model)


def test_deepcopy_is_independent_and_pickle_restores():
    fast = _wrap(_model())
    twin = copy.deepcopy(fast)
    with torch.no_grad():
        fast[0].weight.zero_()
    assert twin[0].weight.abs().max() > 0
    restored = pickle.loads(pickle.dumps(twin))  # noqa: S301 - our own bytes
    assert isinstance(restored, OptimizedModule)
    assert torch.equal(restored[0].weight, twin[0].weight)
    file = io.BytesIO()
    torch.save(twin.state_dict(), file)
    assert file.tell() > 0


def test_without_a_plan_the_model_runs_and_the_report_says_why():
    model, x = _model(), torch.randn(2, 3)
    fast = _wrap(model)
    with torch.no_grad():
        assert torch.equal(fast(x), model(x))
    assert fast.report.cache == "fallback"
    assert fast.report.reason == "nothing is known"
    with pytest.raises(InvalidInput, match="nothing is known"):
        _ = fast.plan


def test_an_internal_failure_warns_once_and_runs_the_model():
    model, x = _model(), torch.randn(2, 3)
    fast = _wrap(model, Broken())
    with torch.no_grad():
        with pytest.warns(GafWarning, match="the tuner is not there"):
            assert torch.equal(fast(x), model(x))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fast(x)
            fast(torch.randn(5, 3))


def test_strict_raises_instead():
    fast = _wrap(_model(), Broken(), strict=True)
    with torch.no_grad(), pytest.raises(Unavailable, match="not there"):
        fast(torch.randn(2, 3))


def test_needed_gradients_flow_through_the_model():
    model, x = _model(), torch.randn(2, 3)
    fast = _wrap(model)
    with pytest.warns(GafWarning, match="gradients"):
        fast(x).sum().backward()
    assert model[0].weight.grad is not None


def test_the_environment_turns_everything_off(monkeypatch):
    monkeypatch.setenv("GAF_DISABLE", "1")
    fast = _wrap(_model(), Broken(), strict=True)
    with torch.no_grad():
        fast(torch.randn(2, 3))
    assert fast.report.reason == "not called yet"
