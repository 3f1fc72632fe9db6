"""Running a real plan is, for the caller, running the model."""

from __future__ import annotations

import copy
import pickle
import re
import threading
from contextlib import contextmanager

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


class Scaled(nn.Module):
    """relu(x * w + b) with two weights and a note that is no tensor."""

    def __init__(self, width=16, scale=1.0):
        super().__init__()
        torch.manual_seed(1)
        self.w, self.b = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        self.scale = scale

    def forward(self, x):
        return torch.relu(x * self.w + self.b) * self.scale


def runs_plan(fast, *args, **kwargs):
    """The result of a call that must have run a plan, not the model."""
    with model_runs(fast) as seen:
        result = fast(*args, **kwargs)
    assert not seen, "the model ran"
    return result


@contextmanager
def model_runs(fast):
    """One entry for each run of the model itself meanwhile."""
    runner, seen = fast._gaf_runner, []
    original = runner.model
    runner.model = lambda *a, **k: seen.append(1) or original(*a, **k)
    try:
        yield seen
    finally:
        runner.model = original


def assert_same(fast, model, *args, **kwargs):
    torch.testing.assert_close(
        runs_plan(fast, *args, **kwargs), model(*args, **kwargs), rtol=1e-4, atol=1e-5
    )


def test_a_module_at_several_shapes_strides_and_types(wrap, source):
    model = Scaled()
    fast = wrap(model)
    for x in (
        torch.randn(4, 16),
        torch.randn(3, 5, 16),
        torch.randn(16, 4).t(),
        torch.randn(8, 32)[::2, ::2],
        torch.randn(1, 16).expand(6, 16),
    ):
        fast(x)
        assert_same(fast, model, x)
        assert fast(x).stride() == model(x).stride()
    assert len(source.asked) == 5
    fast(torch.randn(4, 16))
    assert len(source.asked) == 5


def test_functions_keywords_and_nested_results(wrap):
    def program(x, *, y, scale=2.0):
        return {"sum": x + y, "both": (x * scale, [y - x])}

    x, y = torch.randn(4, 8), torch.randn(4, 8)
    fast = wrap(program)
    for kwargs in ({"y": y}, {"y": y, "scale": 3.0}, {"scale": 2.0, "y": y}):
        torch.testing.assert_close(fast(x, **kwargs), program(x, **kwargs))
    assert fast.report.cache == "hit"


def test_nested_arguments(wrap):
    fast = wrap(lambda pair, by_name: pair[0] * by_name["a"] + pair[1])
    pair, named = (torch.randn(3, 4), torch.randn(3, 4)), {"a": torch.randn(3, 4)}
    for _ in range(2):
        torch.testing.assert_close(fast(pair, named), pair[0] * named["a"] + pair[1])


def test_inputs_and_buffers_are_written(wrap):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x):
            self.total.add_(x)
            x.mul_(2)
            return x + self.total

    model, twin = Counting(), Counting()
    fast = wrap(twin)
    for _ in range(3):
        x = torch.randn(4)
        y = x.clone()
        torch.testing.assert_close(fast(y), model(x))
        torch.testing.assert_close(y, x)
        torch.testing.assert_close(twin.total, model.total)


def test_outputs_alias_inputs_as_eager_does(wrap):
    fast = wrap(lambda x: (x.t(), x, x + 1))
    for _ in range(2):
        x = torch.randn(3, 5)
        turned, same, more = fast(x)
        assert same is x
        assert turned.data_ptr() == x.data_ptr()
        assert turned.stride() == x.t().stride()
        assert more.data_ptr() != x.data_ptr()


def test_results_stay_while_they_are_held(wrap):
    fast = wrap(Scaled())
    inputs = [torch.randn(4, 16) for _ in range(6)]
    held = [fast(x) for x in inputs]
    for x, y in zip(inputs, held, strict=True):
        torch.testing.assert_close(y, fast.wrapped(x))


def test_written_weights_are_packed_again(wrap, source):
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.LayerNorm(16))
    fast, x = wrap(model), torch.randn(4, 16)
    fast(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def step():
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()

    changes = (
        step,
        lambda: setattr(model[0].weight, "data", torch.randn(16, 16)),
        lambda: setattr(model[0].weight, "data", model[0].weight.data.t()),
        lambda: model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()}),
        lambda: model[0].bias.copy_(torch.randn(16)),
    )
    for change in changes:
        change()
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
        assert_same(fast, model, x)
    asked = len(source.asked)
    assert asked == 2  # only the transposed weight made another program
    with torch.inference_mode():
        assert_same(fast, model, x)
    assert len(source.asked) == asked


@pytest.mark.parametrize(
    "write",
    [
        lambda weight: weight.data.add_(1),
        lambda weight: weight.data.copy_(torch.randn(16, 16)),
        lambda weight: weight.detach().numpy().fill(0.5),
    ],
    ids=["data.add_", "data.copy_", "numpy"],
)
def test_weights_written_without_being_counted_are_packed_again(wrap, source, write):
    model, x = nn.Sequential(nn.Linear(16, 16)), torch.randn(4, 16)
    fast = wrap(model)
    for _ in range(2):
        fast(x)
        write(model[0].weight)
        assert_same(fast, model, x)
    assert len(source.asked) == 1


def test_single_elements_written_behind_torchs_back_need_refresh(wrap):
    model, x = nn.Sequential(nn.Linear(16, 16)), torch.randn(4, 16)
    fast = wrap(model)
    fast(x)
    model[0].weight.detach().numpy()[3, 1:9] = 0.5
    fast.refresh()
    assert_same(fast, model, x)


def test_another_parameter_module_or_attribute_is_another_program(wrap):
    model, x = Scaled(), torch.randn(4, 16)
    fast = wrap(model)
    fast(x)
    model.w = nn.Parameter(torch.randn(16))
    torch.testing.assert_close(fast(x), model(x))
    model.scale = 3.0
    torch.testing.assert_close(fast(x), model(x))
    sequence = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
    fast = wrap(sequence)
    fast(x)
    sequence[1] = nn.Sigmoid()
    torch.testing.assert_close(fast(x), sequence(x), rtol=1e-4, atol=1e-5)
    fast.append(nn.Tanh())
    torch.testing.assert_close(fast(x), sequence(x), rtol=1e-4, atol=1e-5)
    assert_same(fast, sequence, x)


def test_another_class_or_recompiled_code_is_another_program(wrap):
    class Shifted(Scaled):
        def forward(self, x):
            return x + self.b

    model, x = Scaled(), torch.randn(4, 16)
    fast = wrap(model)
    fast(x)
    model.__class__ = Shifted
    assert_same(fast, model, x)
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(16, 16), nn.ReLU()))
    fast = wrap(traced)
    fast(x)
    for node in traced.graph.nodes:
        if node.target == "1":  # the ReLU
            node.replace_all_uses_with(node.args[0])
    traced.recompile()
    assert_same(fast, traced, x)


def test_arguments_that_are_one_tensor_are_another_program(wrap, source):
    x, y = torch.randn(4, 8), torch.randn(4, 8)
    for program, calls in (
        (lambda a, b: a - b, [((x, x), {}), ((x, y), {}), ((y, y), {}), ((y, x), {})]),
        (lambda a, *, b: a - b, [((x,), {"b": x}), ((x,), {"b": y})]),
        (lambda pair: pair[0] - pair[1], [(([x, x],), {}), (([y, x],), {})]),
    ):
        fast, before = wrap(program), len(source.asked)
        for args, kwargs in calls:
            assert_same(fast, program, *args, **kwargs)
        assert len(source.asked) == before + 2


def test_an_argument_that_is_the_models_own_tensor_is_an_argument(wrap, source):
    model = Scaled()
    fast = wrap(model)
    for x in (model.w, torch.randn(16), model.b):
        assert_same(fast, model, x)
    assert len(source.asked) == 1
    table = torch.randn(16)
    fast = wrap(lambda x: x * table)
    for x in (table, torch.randn(16)):
        assert_same(fast, lambda x: x * table, x)


class Configured(nn.Module):
    """A model with containers among its attributes."""

    def __init__(self):
        super().__init__()
        self.config = {"scale": 2.0, "sizes": [1, (2, 3)], "nested": {"none": None}}
        self.sizes, self.pair, self.trace = [4, 8], (torch.ones(3), "name"), []

    def forward(self, x):
        return x * self.config["scale"] + self.sizes[0]


def test_containers_among_attributes(wrap, source):
    model = Configured()
    fast, x, wider = wrap(model), torch.randn(4, 8), torch.randn(4, 9)
    for _ in range(2):
        for given in (x, wider):
            torch.testing.assert_close(fast(given), model(given))
    assert_same(fast, model, x)
    assert len(source.asked) == 2
    model.config = {**model.config, "scale": 3.0}
    torch.testing.assert_close(fast(x), x * 3 + 4)
    model.sizes = [5, 8]
    torch.testing.assert_close(fast(x), x * 3 + 5)


def test_what_a_function_closes_over_is_watched(wrap):
    model, factor = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).eval(), 2.0
    x = torch.randn(4, 8)

    def program(x):
        return model(x) * factor

    fast = wrap(program)
    torch.testing.assert_close(fast(x), program(x))
    factor = 5.0
    torch.testing.assert_close(fast(x), program(x))
    model[0].weight.zero_()
    torch.testing.assert_close(fast(x), program(x))
    model[1] = nn.ReLU()
    torch.testing.assert_close(fast(x), program(x))


def test_conversion_to_another_type(wrap):
    model = Scaled()
    fast, x = wrap(model), torch.randn(4, 16)
    fast(x)
    assert fast.to(torch.float64) is fast
    assert runs_result_type(fast, x.double()) == torch.float64
    fast.to(torch.bfloat16)
    assert runs_result_type(fast, x.bfloat16()) == torch.bfloat16
    assert fast(x).dtype == model(x).dtype == torch.float32


def runs_result_type(fast, x):
    fast(x)
    torch.testing.assert_close(runs_plan(fast, x), fast.wrapped(x), rtol=1e-2, atol=1e-2)
    return fast(x).dtype


def test_copies_have_weights_and_plans_of_their_own(wrap, source):
    fast, x = wrap(Scaled()), torch.randn(4, 16)
    before = fast(x)
    twin = copy.deepcopy(fast)
    fast.w.zero_()
    assert twin.w.abs().max() > 0
    for copied in (twin, pickle.loads(pickle.dumps(twin))):  # noqa: S301 - our own bytes
        copied.__dict__["_gaf_runner"].programs.source = source
        torch.testing.assert_close(copied(x), before)
        assert_same(copied, copied.wrapped, x)


def test_threads_and_thread_counts(wrap):
    fast, count = wrap(nn.Sequential(nn.Linear(32, 32), nn.GELU())), torch.get_num_threads()
    inputs = [torch.randn(4 + n // 4, 32) for n in range(8)]
    expected = [fast.wrapped(x) for x in inputs]
    right = []

    def work(x, y):
        with torch.no_grad():
            right.extend(torch.allclose(fast(x), y, rtol=1e-4, atol=1e-5) for _ in range(40))

    threads = [
        threading.Thread(target=work, args=pair) for pair in zip(inputs, expected, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 320
    try:
        for number in (1, 3, 2):
            torch.set_num_threads(number)
            assert_same(fast, fast.wrapped, inputs[0])
    finally:
        torch.set_num_threads(count)


def test_modes_change_the_program(wrap):
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(1.0))
    fast, x = wrap(model).eval(), torch.randn(4, 8)
    evaluated = fast(x)
    assert evaluated.abs().max() > 0
    fast.train()
    assert fast(x).abs().max() == 0
    model.eval()
    torch.testing.assert_close(fast(x), evaluated)
    assert not fast.training


def test_training_batch_norm_updates_its_statistics(wrap):
    model = nn.Sequential(nn.BatchNorm1d(8)).train()
    twin = copy.deepcopy(model)
    fast = wrap(twin)
    for _ in range(3):
        x = torch.randn(6, 8)
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
        for key, value in model.state_dict().items():
            torch.testing.assert_close(twin.state_dict()[key], value, rtol=1e-4, atol=1e-5)


def test_a_plan_that_is_no_gain_is_not_run(wrap, source):
    source.changes = {"improved": False, "measured_us": 3.0, "baseline_us": 2.0}
    model, x = Scaled(), torch.randn(4, 16)
    fast = wrap(model)
    fast(x)
    with model_runs(fast) as ran:
        fast(x)
    assert ran == [1]
    assert fast.report.cache == "hit"
    assert not fast.report.improved
    assert "the model runs itself" in fast.report.reason
    assert fast.plan.kernels


@pytest.mark.parametrize(
    ("program", "good", "bad"),
    [
        (lambda t, i: t[i] * 2, 0, 50),
        (lambda t, i: nn.functional.embedding(i, t).relu(), 49, -1),
        (lambda t, i: t.gather(0, i[:, None]).exp(), 7, 2**40),
        (lambda t, i: t.index_select(0, i + 1) + 1, 3, 49),
        (lambda t, i: t.sum() + 7 // i, 3, 0),
    ],
)
def test_values_that_eager_refuses_raise_its_error_and_write_nothing(wrap, program, good, bad):
    def counting(total, table, index):
        result = program(table, index)
        total.add_(1)
        return result

    fast, model = wrap(counting), counting
    table, total = torch.randn(50, 3), torch.zeros(())
    index = torch.full((9,), good)
    wrong = index.clone()
    wrong[5] = bad
    fast(total, table, index)
    with pytest.raises((IndexError, RuntimeError)) as expected:
        model(torch.zeros(()), table, wrong)
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
        fast(total, table, wrong)
    assert total == 1
    torch.testing.assert_close(fast(total, table, index), program(table, index))
    assert fast.report.cache == "hit"


def test_report_and_plan_are_those_of_the_last_program(wrap):
    fast = wrap(Scaled())
    small, large = torch.randn(2, 16), torch.randn(64, 16)
    fast(small)
    first = fast.report.key
    fast(large)
    second = fast.report.key
    assert first != second
    fast(small)
    fast(small)
    assert fast.report.key == first == str(fast.plan.key)
    fast(large)
    assert fast.report.key == second == str(fast.plan.key)
