"""Whatever a program reads besides its arguments is watched: another value is another program."""

from __future__ import annotations

import dataclasses
import types

import pytest
import torch
from torch import nn

from graph_autofusion.notices import GafWarning
from graph_autofusion.reach import Reach
from tests.graph_autofusion.test_plans_behave import model_runs

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


X = torch.linspace(-1, 1, 6)


def follows(wrap, model, *changes):
    """The plan's result is the model's after each change, and a plan ran before."""
    fast = wrap(model)
    fast(X)
    with model_runs(fast) as ran:
        fast(X)
    assert not ran
    for change in changes:
        change()
        for _ in range(2):
            torch.testing.assert_close(fast(X), model(X))
    return fast


class Settings:
    """Class attributes as settings."""

    offset = 1.0


@dataclasses.dataclass(slots=True)
class Slotted:
    scale: float
    sizes: list


FACTOR = 2.0
SETTINGS = Settings()


def _shift(x, settings):
    return x + settings.offset


class Configured(nn.Module):
    """Reads all kinds of things."""

    gain = 1.5

    def __init__(self):
        super().__init__()
        self.config = {"scale": 2.0, "nested": [1.0, {"deep": 3.0}]}
        self.space = types.SimpleNamespace(bias=0.5)
        self.slotted = Slotted(2.0, [1.0])
        self.tables = {"t": torch.ones(6)}
        self.layers = [nn.Linear(6, 6), nn.Linear(6, 6)]  # not registered

    @property
    def total(self):
        return self.gain + FACTOR

    def forward(self, x):
        x = x * self.config["scale"] + self.config["nested"][1]["deep"] + self.space.bias
        x = x * self.slotted.scale + self.slotted.sizes[0] + self.tables["t"]
        return _shift(self.layers[1](self.layers[0](x)), SETTINGS) * self.total


def test_what_attributes_hold(wrap):
    model = Configured()

    def rename():
        model.config["nested"][1] = {"deep": 9.0}

    follows(
        wrap,
        model,
        lambda: model.config.update(scale=5.0),
        lambda: model.config["nested"][1].update(deep=7.0),
        rename,
        lambda: setattr(model.space, "bias", 2.0),
        lambda: setattr(model.slotted, "scale", 4.0),
        lambda: model.slotted.sizes.__setitem__(0, 8.0),
        lambda: model.tables["t"].mul_(3),
        lambda: model.tables.update(t=torch.full((6,), 2.0)),
        lambda: model.layers[0].weight.zero_(),
        lambda: model.layers.__setitem__(1, nn.Linear(6, 6)),
    )


def test_classes_and_globals(wrap, monkeypatch):
    model, here = Configured(), globals()
    follows(
        wrap,
        model,
        lambda: monkeypatch.setattr(Configured, "gain", 4.0),
        lambda: setattr(model, "gain", 6.0),  # hides the class's
        lambda: monkeypatch.setattr(Configured, "total", 2.0),
        lambda: monkeypatch.setitem(here, "FACTOR", 3.0),
        lambda: monkeypatch.setattr(Settings, "offset", 5.0),
        lambda: monkeypatch.setattr(SETTINGS, "offset", 7.0, raising=False),
        lambda: monkeypatch.setitem(here, "_shift", lambda x, settings: x * 3),
        lambda: monkeypatch.setattr(Configured, "forward", lambda self, x: x - 1),
        lambda: model.__dict__.update(forward=lambda x: x * x),
    )


def test_an_object_that_is_called(wrap):
    class Program:
        def __init__(self):
            self.model, self.scale, self.calls = nn.Linear(6, 6), 2.0, 0

        def __call__(self, x):
            return self.model(x) * self.scale

        def predict(self, x):
            return self(x) + 1

    program = Program()
    for function in (program, program.predict):
        follows(
            wrap,
            function,
            lambda: setattr(program, "scale", 3.0),
            lambda: program.model.weight.zero_(),
            lambda: setattr(program, "model", nn.Linear(6, 6)),
        )


def test_what_no_code_reads_does_not_count(wrap, source):
    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.stats, self.linear = types.SimpleNamespace(calls=0), nn.Linear(6, 6)

        def forward(self, x):
            return self.linear(x)

    model = Watched()
    fast = wrap(model)
    for _ in range(4):
        torch.testing.assert_close(fast(X), model(X))
        model.stats.calls += 1
    assert len(source.asked) == 1


def test_a_program_that_writes_where_no_plan_would_is_left_alone(wrap):
    seen = []

    def remembering(x):
        seen.append(1.0)
        return x + len(seen)

    fast = wrap(remembering, strict=False)
    with pytest.warns(GafWarning, match="changes its attributes or globals"):
        fast(X)
    for _ in range(4):  # captured once more, then no more
        torch.testing.assert_close(fast(X), X + len(seen))
    before = len(seen)
    fast(X)
    assert len(seen) == before + 1


def test_the_default_type_is_read_by_programs_that_make_tensors(wrap):
    fast = wrap(lambda x: x + torch.ones(6))
    assert fast(X).dtype == fast(X).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert fast(X).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert fast(X).dtype == torch.float32


@pytest.mark.parametrize("one", [0.0, float("nan")])
def test_numbers_have_signs(wrap, source, one):
    model = nn.Module()
    model.scale = one
    model.forward = lambda x, scale: 1 / (x * scale * model.scale)
    fast, ones = wrap(model), torch.ones(6)
    for scale in (0.0, -0.0, one):
        model.scale = scale
        for given in (1.0, -1.0, 0.0, -0.0):
            for _ in range(2):
                torch.testing.assert_close(
                    fast(ones, given), model.forward(ones, given), equal_nan=True
                )


def test_a_program_of_another_wrapper(wrap):
    inner = wrap(nn.Sequential(nn.Linear(6, 6), nn.ReLU()))

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = inner, nn.Linear(6, 6)

        def forward(self, x):
            return self.last(self.inner(x))

    model = Outer()
    follows(wrap, model, lambda: inner[0].weight.zero_(), lambda: inner[0].bias.fill_(2.0))
    follows(wrap, lambda x: inner(x) * 2, lambda: inner[0].bias.fill_(3.0))
    compiled = torch.compile(nn.Linear(6, 6), backend="eager")
    torch.testing.assert_close(wrap(compiled)(X), compiled(X))


def test_large_and_deep_data_are_not_walked_through():
    model = nn.Module()
    model.table = list(range(100_000))
    model.chain = None
    for _ in range(10_000):
        model.chain = [model.chain]
    model.itself = {}
    model.itself["again"] = model.itself
    many = [nn.Module() for _ in range(300)]
    for module in many:
        module.data = list(range(200))
    model.parts = nn.ModuleList(many)
    assert sum(map(len, Reach(model).contents)) < 5_000
