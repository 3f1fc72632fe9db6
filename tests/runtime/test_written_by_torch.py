"""Caches and other inputs that torch writes in place, as eager does: only where that is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gen.errors import InvalidGraph, InvalidValues
from kernel_gen.frontend import capture
from kernel_gen.frontend.framework import resolve_in_place
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.fusion.write_back import written_by_torch
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.layout import plan_layout
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import TorchPlan
from tests.runtime.test_assembled_programs import unfused_plan

Tensor = torch.Tensor
SHAPE = (2, 6, 4)


def operands() -> tuple[Tensor, ...]:
    """A cache, rows for it, where they go."""
    return torch.randn(SHAPE), torch.randn(2, 2, 4), torch.tensor([4, 1])


def row(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.index_copy_(1, at, new)
    return x * 2


def put(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x[:, at] = new
    return x * 2


def filled(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.index_fill_(1, at, 3.0)
    return x + new.sum()


def masked(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.masked_scatter_(x.new_ones(6, 4, dtype=torch.bool) & (at.sum() > 0), x.new_zeros(SHAPE))
    return new + 1


def scattered(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.scatter_(1, at.reshape(1, 2, 1).expand(1, 2, 3), new)
    return x * 2


def again(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.index_copy_(1, at, new)
    x.index_copy_(1, at + 1, new * 3)
    return x.exp()


def returned_itself(x: Tensor, new: Tensor, at: Tensor) -> Any:
    return x.index_copy_(1, at, new), new + 1


def viewed_after(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.index_copy_(1, at, new)
    return x.transpose(0, 1), x[:, 2:5] + 1


def returned_copy(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.index_copy_(1, at, new)
    return x.clone(), new + 1


def read_before(x: Tensor, new: Tensor, at: Tensor) -> Any:
    old = x.sum(1)
    x.index_copy_(1, at, new)
    return old + 1, x * 2


def viewed_before(x: Tensor, new: Tensor, at: Tensor) -> Any:
    old = x[:, 1:3].clone()
    x.index_copy_(1, at, new)
    return old - x[:, 1:3]


def from_itself(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.index_copy_(1, at, x[:, 2:4] + new)
    return x * 2


def shifted(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x[:, at] = x[:, at + 1]
    return new + x.sum()


def added(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.index_put_((torch.tensor([0, 1]), at), new[:, 0], accumulate=True)
    return x * 2


def between(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x.index_copy_(1, at, new)
    middle = x.sum(0)
    x.index_copy_(1, at + 1, new)
    return middle, x * 2


def through_a_view(x: Tensor, new: Tensor, at: Tensor) -> Any:
    x[1].index_copy_(0, at, new[0])
    x.transpose(0, 1)[at] = new.transpose(0, 1)
    return x * 2


IN_PLACE = [row, put, filled, masked, scattered, again, returned_itself, viewed_after]
COPIED = [returned_copy, read_before, viewed_before, from_itself, shifted, added, between]
COPIED += [through_a_view]


def plan_for(
    function: Callable[..., Any], args: Sequence[Tensor], compiler: Compiler, *, torch_only: bool
) -> tuple[Plan, Any]:
    captured = capture(function, tuple(args))
    nodes = range(len(captured.graph.nodes)) if torch_only else ()
    return unfused_plan(captured.graph, compiler, tuple(nodes)), captured


def assert_as_eager(
    function: Callable[..., Any], args: Sequence[Tensor], compiler: Compiler, *, torch_only: bool
) -> Plan:
    """Three calls give what eager gives, in results and in inputs, and write where eager does."""
    plan, captured = plan_for(function, args, compiler, torch_only=torch_only)
    bound = TorchPlan(plan).bind([])
    ours, theirs = ([t.clone() for t in args] for _ in range(2))
    for _ in range(3):
        before = ours[0].data_ptr(), ours[0]._version
        results = captured.rebuild(ours, bound(ours, 2))
        expected = function(*theirs)
        torch.testing.assert_close(results, expected)
        torch.testing.assert_close(ours, theirs)
        assert ours[0].data_ptr() == before[0]
        assert ours[0]._version > before[1]
        for got, wanted in zip(as_list(results), as_list(expected), strict=True):
            assert (got is ours[0]) == (wanted is theirs[0])
            shares = got.untyped_storage().data_ptr() == ours[0].untyped_storage().data_ptr()
            assert shares == (
                wanted.untyped_storage().data_ptr() == theirs[0].untyped_storage().data_ptr()
            )
    return plan


def as_list(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple) else [results]


@pytest.mark.parametrize("torch_only", [False, True])
@pytest.mark.parametrize("function", IN_PLACE)
def test_written_in_place(function: Any, torch_only: bool, compiler: Compiler) -> None:
    plan = assert_as_eager(function, operands(), compiler, torch_only=torch_only)
    assert {target for _, target in plan.layout.overwrites} == {0}
    made = {v for k in plan.kernels for v in k.group.outputs}
    assert not made & {value for value, _ in plan.layout.overwrites}


@pytest.mark.parametrize("torch_only", [False, True])
@pytest.mark.parametrize("function", COPIED)
def test_old_values_that_are_needed_stay(
    function: Any, torch_only: bool, compiler: Compiler
) -> None:
    plan = assert_as_eager(function, operands(), compiler, torch_only=torch_only)
    assert written_by_torch(plan.program) == {}


def test_repeated_places(compiler: Compiler) -> None:
    cache, new, _ = operands()
    same = new[:, :1].expand(2, 2, 4).clone()  # else it is torch's choice which one stays
    assert_as_eager(row, (cache, same, torch.tensor([3, 3])), compiler, torch_only=False)
    assert_as_eager(put, (cache, same, torch.tensor([3, 3])), compiler, torch_only=False)


def test_a_cache_of_the_model(compiler: Compiler) -> None:
    """Attention reads the updated keys where they lie."""

    class Cached(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.randn(1, 2, 16, 8))

        def forward(self, query: Tensor, new: Tensor, at: Tensor) -> Tensor:
            self.keys.index_copy_(2, at, new)
            return torch.nn.functional.scaled_dot_product_attention(query, self.keys, self.keys)

    model = Cached()
    args = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 1, 8), torch.tensor([5])
    captured = capture(model, args)
    plan = unfused_plan(captured.graph, compiler)
    assert plan.layout.overwrites
    keys = model.keys.clone()
    bound = TorchPlan(plan).bind([keys])
    for place in (5, 0, 15, 5):
        args = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 1, 8), torch.tensor([place])
        found = captured.rebuild([keys, *args], bound(list(args), 2))
        torch.testing.assert_close(found, model(*args), rtol=1e-4, atol=1e-5)
        assert torch.equal(keys, model.keys)


def test_a_call_that_fails_later_can_be_made_again(compiler: Compiler) -> None:
    def function(x: Tensor, new: Tensor, at: Tensor, rows: Tensor, table: Tensor) -> Tensor:
        x.index_copy_(1, at, new)
        return table[rows] + x.sum()

    args = (*operands(), torch.tensor([0, 1]), torch.randn(3, 4))
    plan, captured = plan_for(function, args, compiler, torch_only=False)
    assert plan.layout.overwrites
    bound = TorchPlan(plan).bind([])
    cache, wanted = args[0].clone(), args[0].clone()
    with pytest.raises(InvalidValues):
        bound([cache, *args[1:3], torch.tensor([0, 3]), args[4]], 2)
    result = captured.rebuild([cache, *args[1:]], bound([cache, *args[1:]], 2))
    torch.testing.assert_close(result, function(wanted, *args[1:]))
    assert torch.equal(cache, wanted)


def test_what_eager_fails_at_first_leaves_the_cache_alone(compiler: Compiler) -> None:
    """The rows of the table may be read by a kernel that runs after the write, or before it."""

    def function(x: Tensor, new: Tensor, at: Tensor, rows: Tensor, table: Tensor) -> Tensor:
        first = table[rows]
        x.index_copy_(1, at, new)
        return first + x.sum()

    args = (*operands(), torch.tensor([0, 1]), torch.randn(3, 4))
    plan, _ = plan_for(function, args, compiler, torch_only=False)
    late = replace(plan.cover, groups=_moved_back(plan))
    for cover in (plan.cover, late):
        kernels = {kernel.group: kernel for kernel in plan.kernels}
        order = [kernels[group] for group in cover.groups if isinstance(group, FusionGroup)]
        layout = plan_layout(plan.program, cover, order)
        assert bool(layout.overwrites) == (cover is plan.cover)
    cache = args[0].clone()
    with pytest.raises(InvalidValues):
        TorchPlan(plan).bind([])([cache, *args[1:3], torch.tensor([0, 3]), args[4]], 2)
    assert torch.equal(cache, args[0])


def _moved_back(plan: Plan) -> tuple[FusionGroup | FrameworkGroup, ...]:
    """The groups with the one that reads the table behind the one that torch runs."""
    groups = list(plan.cover.groups)
    take = next(g for g in groups if plan.program.nodes[g.nodes[0]].op == "take")
    write = next(g for g in groups if isinstance(g, FrameworkGroup))
    groups.remove(take)
    groups.insert(groups.index(write) + 1, take)
    return tuple(groups)


def test_a_place_outside_is_torch_s_error(compiler: Compiler) -> None:
    plan, _ = plan_for(row, operands(), compiler, torch_only=False)
    cache, new, _ = operands()
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        TorchPlan(plan).bind([])([cache, new, torch.tensor([4, 6])], 2)


def test_the_framework_s_run_writes_where_eager_does() -> None:
    graph = capture(row, operands()).graph
    program = TorchProgram(graph, in_place=written_by_torch(graph))
    (cache, new, at), (other, *_) = operands(), operands()
    other.copy_(cache)
    row(other, new, at)
    results = program(cache, new, at)
    assert any(result is cache for result in results)
    assert torch.equal(cache, other)


class _Decoder(torch.nn.Module):
    """One token of a LLaMA whose static cache is the module's."""

    def __init__(self) -> None:
        super().__init__()
        config = transformers.LlamaConfig(
            hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2, vocab_size=40, max_position_embeddings=64,
        )  # fmt: skip
        self.model = transformers.LlamaForCausalLM(config).eval()
        self.cache = transformers.StaticCache(config=config, max_cache_len=12)
        self.cache.early_initialization(1, 2, 16, torch.float32, torch.device("cpu"))
        for number, layer in enumerate(self.cache.layers):
            for name in ("keys", "values", "cumulative_length"):
                self.register_buffer(f"{name}{number}", getattr(layer, name))

    def forward(self, ids: Tensor, at: Tensor) -> Tensor:
        for number, layer in enumerate(self.cache.layers):
            for name in ("keys", "values", "cumulative_length"):
                setattr(layer, name, getattr(self, f"{name}{number}"))
        found = self.model(input_ids=ids, cache=self.cache, position_ids=at)
        return found.logits  # type: ignore[no-any-return]


def test_a_static_cache_of_transformers() -> None:
    model = _Decoder()
    args = torch.tensor([[5]]), torch.tensor([[0]])
    captured = capture(model, args)
    written = written_by_torch(captured.graph)
    caches = {i for i, item in enumerate(captured.graph.inputs) if item.value in written.values()}
    assert len(caches) == 4
    program = TorchProgram(captured.graph, in_place=written)
    ours = [tensor.clone() for tensor in captured.bind(model, args)]
    mutated = [
        (n, o.mutates) for n, o in enumerate(captured.graph.outputs) if o.mutates is not None
    ]
    with torch.no_grad():
        for step in range(3):
            ids, at = torch.tensor([[step * 7 + 1]]), torch.tensor([[step]])
            ours[-2:] = [ids, at]
            results = program(*ours)
            for number, target in mutated:
                assert (results[number] is ours[target]) == (target in caches)
                ours[target] = results[number]
            expected = model(ids, at)
            torch.testing.assert_close(captured.rebuild(ours, results), expected)
        for given, wanted in zip(ours, captured.bind(model, args), strict=True):
            if given.shape == model.cache.layers[0].keys.shape:
                torch.testing.assert_close(given, wanted)


@pytest.mark.parametrize("target", ["aten.sort.default", "aten.relu_.default", "aten.no.default"])
def test_operators_without_a_form_in_place(target: str) -> None:
    with pytest.raises(InvalidGraph):
        resolve_in_place(target)


WRITES: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "copy": lambda x, new, at: x.index_copy_(1, at, new),
    "copy below": lambda x, new, at: x.index_copy_(1, at - 1, new),
    "put": lambda x, new, at: x.__setitem__((slice(None), at), new),
    "slice": lambda x, new, at: x.__setitem__((slice(None), slice(1, 3)), new),
    "overlapping slice": lambda x, new, at: x.__setitem__((slice(None), slice(2, 4)), new),
    "slice of a view": lambda x, new, at: x.transpose(1, 2)[:, 1:3].mul_(2),
    "fill": lambda x, new, at: x.index_fill_(2, at.clamp(max=3), 0.5),
    "add": lambda x, new, at: x.add_(1),
    "from itself": lambda x, new, at: x.index_copy_(1, at, x[:, :2] + new),
}
READS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "read": lambda x, new, at: x * 3,
    "read a view": lambda x, new, at: x[:, 2:4] - new,
    "give a copy": lambda x, new, at: x.clone(),
    "give a view": lambda x, new, at: x[:, 1:],
}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    names=st.lists(st.sampled_from([*WRITES, *READS]), min_size=1, max_size=5),
    kernels=st.booleans(),
)
def test_any_order_of_reads_and_writes(names: list[str], kernels: bool, compiler: Compiler) -> None:
    def function(x: Tensor, new: Tensor, at: Tensor) -> Any:
        results = []
        for name in ("copy", *names):
            if name in READS:
                results.append(READS[name](x, new, at))
            else:
                WRITES[name](x, new, at)
        return tuple(results) or x.sum()

    assert_as_eager(function, operands(), compiler, torch_only=not kernels)
