"""Guards tell apart what a plan may stand in for and what it may not."""

from __future__ import annotations

import torch
from torch import nn

from graph_autofusion.guards import describe_call, framework_reason
from graph_autofusion.model_guard import ModelGuard, ModelState


def _signature(*args, **kwargs):
    return describe_call(args, kwargs).signature


def test_equal_calls_have_equal_signatures():
    assert _signature(torch.ones(2, 3)) == _signature(torch.zeros(2, 3))


def test_dtype_shape_strides_structure_and_constants_are_told_apart():
    x = torch.ones(4, 4)
    calls = [
        _signature(x),
        _signature(x.double()),
        _signature(torch.ones(4, 5)),
        _signature(x.t()[:, :3]),
        _signature(x, x),
        _signature(x, x.clone()),
        _signature([x]),
        _signature((x,)),
        _signature(x=x),
        _signature(y=x),
        _signature(x, 1),
        _signature(x, 1.0),
        _signature(x, True),
        _signature(x, None),
    ]
    assert len(set(calls)) == len(calls)


def test_arguments_that_no_plan_can_take_are_named():
    assert "not a plain tensor" in describe_call((object(),), {}).reason
    assert describe_call((torch.ones(2, 2).to_sparse(),), {}).signature is None


def test_gradients_and_autocast_need_the_framework():
    x = torch.ones(2, requires_grad=True)
    assert "gradients" in framework_reason(False, [x])
    assert "gradients" in framework_reason(True, [])
    with torch.no_grad():
        assert framework_reason(True, [x]) == ""
        with torch.autocast("cpu"):
            assert "autocast" in framework_reason(False, [x])


def test_a_function_transform_needs_the_framework():
    seen = []
    torch.func.vmap(lambda x: seen.append(framework_reason(False, [x])) or x)(torch.ones(3))
    assert "torch.func" in seen[0]


def _guarded():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3)).eval()
    constants = [*model.parameters(), *model.buffers()]
    return model, ModelGuard(model, constants)


def test_an_untouched_model_is_the_same():
    _, guard = _guarded()
    assert guard.check() is ModelState.SAME


def test_a_written_weight_is_seen():
    model, guard = _guarded()
    with torch.no_grad():
        model[0].weight.mul_(2)
    assert guard.check() is ModelState.WRITTEN


def test_a_moved_weight_is_seen():
    model, guard = _guarded()
    model[0].weight.data = torch.ones(3, 3)
    assert guard.check() is ModelState.WRITTEN


def test_another_parameter_module_or_mode_is_seen():
    for change in (
        lambda m: setattr(m[0], "weight", nn.Parameter(torch.ones(3, 3))),
        lambda m: m.__setitem__(0, nn.Linear(3, 3)),
        lambda m: m[1].train(),
        lambda m: m[2].register_buffer("running_mean", torch.ones(3)),
    ):
        model, guard = _guarded()
        change(model)
        assert guard.check() is ModelState.CHANGED
