"""Compares a captured program with eager: by torch, and by the reference evaluator."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from kernel_gen.frontend import Captured, capture
from kernel_gen.frontend.captured import FreshResult
from kernel_gen.frontend.inputs import to_numpy
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.ir.evaluate import evaluate

TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 2e-5,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


def ops(captured: Captured) -> Counter[str]:
    """How often each op stands in the graph; numbers do not count."""
    nodes = captured.graph.nodes
    return Counter(n.op for n in nodes if n.op != "full" or n.attr("shape") != ())


def targets(captured: Captured) -> list[object]:
    """Targets of the framework nodes."""
    return [n.attr("target") for n in captured.graph.nodes if n.op == "framework"]


def assert_as_eager(
    model: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    exact: bool = True,
    reference: bool = True,
    dynamic_shapes: Any = None,
) -> Captured:
    """Captures, runs by torch, and compares results, written arguments, strides and structure.

    `exact`: bit for bit, otherwise to the dtype's tolerance. `reference`: the evaluator's values
    must agree too (programs without framework nodes).
    """
    kwargs = dict(kwargs or {})
    captured = capture(
        model, tuple(args), dynamic_shapes=dynamic_shapes, example_kwargs=kwargs or None
    )
    mine, theirs = copy.deepcopy(list(args)), copy.deepcopy(list(args))
    with torch.no_grad():
        rng = torch.get_rng_state()
        want = model(*theirs, **kwargs)
        torch.set_rng_state(rng)
        user = captured.flatten(mine, kwargs)
        assert user is not None, "the captured program refuses its own example inputs"
        inputs = captured.bind(model, user)
        if reference and not targets(captured):
            assert_reference(captured, inputs, want)
        got = captured.rebuild(inputs, TorchProgram(captured.graph)(*inputs))
    assert_equal(got, want, exact=exact)
    assert_equal(mine, theirs, exact=exact)
    return captured


def assert_reference(captured: Captured, inputs: list[torch.Tensor], want: Any) -> None:
    """The reference evaluator's results against eager's."""
    found = evaluate(captured.graph, [to_numpy(tensor) for tensor in inputs], "strict")
    for leaf, tensor in zip(captured.results, pytree.tree_leaves(want), strict=True):
        if not isinstance(leaf, FreshResult):
            continue
        value = found[leaf.output]
        tolerance = TOLERANCE.get(tensor.dtype, 0)
        held = tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()
        if tensor.is_floating_point():  # float64 goes on where the dtype is at its end
            limit = torch.finfo(tensor.dtype).max
            value = np.where(np.abs(value) > limit, np.copysign(np.inf, value), value)
        np.testing.assert_allclose(value, held, rtol=tolerance, atol=tolerance)


def assert_equal(got: Any, want: Any, *, exact: bool = True) -> None:
    """Equal structure, types, shapes, strides and elements (NaN equals NaN)."""
    got_leaves, got_spec = pytree.tree_flatten(got)
    want_leaves, want_spec = pytree.tree_flatten(want)
    assert got_spec == want_spec
    for have, expected in zip(got_leaves, want_leaves, strict=True):
        if not isinstance(expected, torch.Tensor):
            assert type(have) is type(expected)
            assert have == expected
            continue
        assert have.dtype == expected.dtype
        assert have.stride() == expected.stride()
        tolerance = 0.0 if exact else TOLERANCE.get(expected.dtype, 0.0)
        torch.testing.assert_close(have, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
