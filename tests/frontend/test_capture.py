"""What capture keeps of a program besides its arithmetic."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend import capture
from kernel_gen.frontend.captured import (
    BufferName,
    ConstantResult,
    ConstantTensor,
    FreshResult,
    InputView,
    OutputView,
    ParameterName,
    SameInput,
    UserLeaf,
)
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.types import ValueDomain
from tests.frontend.as_eager import assert_as_eager, ops, targets

Tensor = torch.Tensor
X = torch.arange(20, dtype=torch.float32).reshape(4, 5)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(5)
        self.up = nn.Linear(5, 8)
        self.down = nn.Linear(8, 5, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def test_composites_stay_whole_and_weights_are_named() -> None:
    captured = assert_as_eager(Mlp(), (X,))
    assert ops(captured) == {"layer_norm": 1, "linear": 2, "gelu": 1, "add": 1}
    names = {b.name for b in captured.bindings if isinstance(b, ParameterName)}
    assert names == {"norm.weight", "norm.bias", "up.weight", "up.bias", "down.weight"}
    kinds = [item.kind for item in captured.graph.inputs]
    assert kinds.count(InputKind.PARAMETER) == 5
    assert [n.name for n in captured.graph.nodes if n.op == "layer_norm"] == ["norm/layer_norm"]


def test_the_digest_is_the_programs_and_not_the_objects() -> None:
    assert capture(Mlp(), (X,)).graph.digest == capture(Mlp(), (X + 1,)).graph.digest
    assert capture(Mlp(), (X,)).graph.digest != capture(Mlp(), (X[:3],)).graph.digest


def test_a_tied_weight_is_one_input() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 5)
            self.head = nn.Linear(5, 7, bias=False)
            self.head.weight = self.table.weight

        def forward(self, i: Tensor) -> Tensor:
            return self.head(self.table(i))

    captured = assert_as_eager(Tied(), (torch.tensor([1, 6]),))
    assert len(captured.bindings) == 2


def test_unread_weights_are_no_inputs() -> None:
    class Unread(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.other = nn.Linear(5, 5), nn.Linear(5, 5)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.used(x)

    captured = assert_as_eager(Unread(), (X, X))
    assert [type(b) for b in captured.bindings] == [ParameterName] * 2 + [UserLeaf] * 2


def test_positions_get_the_tables_domain() -> None:
    def program(table: Tensor, i: Tensor, j: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        return F.embedding(i, table), x.gather(1, j.long()), x[i]

    i, j = torch.tensor([0, 3, 1]), torch.tensor([[1], [2], [0], [4]], dtype=torch.int32)
    captured = assert_as_eager(program, (torch.randn(4, 3), i, j, X))
    domains = [item.domain for item in captured.graph.inputs]
    assert domains[1:3] == [ValueDomain(0, 3), ValueDomain(0, 4)]
    assert domains[0] == domains[3] == ValueDomain()


def test_in_place_programs_become_functional() -> None:
    def program(a: Tensor) -> Tensor:
        a = a.clone()
        b = a + 1
        a[1:].copy_(b[1:])
        a[:, 0] = 7.0
        a[..., 1:3].mul_(2).add_(b[..., :2])
        c = a.relu_() + 2
        return a * b / c

    assert not targets(assert_as_eager(program, (X,)))


def test_written_arguments_are_mutations() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Any, ...]:
        before = x.sum()
        x.add_(y)
        y[0].zero_()
        return before, x.view(-1), x, x.sum()

    captured = assert_as_eager(program, (X, X + 1))
    assert [m.input for m in captured.mutations] == [0, 1]
    assert captured.results[1] == InputView(0, (20,), (1,), 0)
    assert captured.results[2] == SameInput(0)
    assert [o.alias_of for o in captured.graph.outputs[2:]] == [None, 0, 0, None]


def test_written_buffers_are_mutations() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.register_buffer("scratch", torch.ones(5), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.scratch + self.calls

    module = Counter()
    captured = capture(module, (X,))
    inputs = captured.bind(module, [X])
    for expected in (1, 2):
        got = captured.rebuild(inputs, TorchProgram(captured.graph)(*inputs))
        assert module.calls == expected
        torch.testing.assert_close(got, X + expected)
    assert BufferName("scratch") in captured.bindings


def test_returned_inputs_and_views_of_them_share_their_storage() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Any, ...]:
        return x, y[1:, ::2], x.t(), y.expand(2, 4, 5), y.clone(), y.contiguous()

    captured = assert_as_eager(program, (X, X + 1))
    x, y = X.clone(), X + 1
    got = captured.rebuild([x, y], TorchProgram(captured.graph)(x, y))
    assert got[0] is x
    assert got[1].data_ptr() == y[1:].data_ptr()
    assert got[4].data_ptr() != y.data_ptr()
    assert got[5].data_ptr() == y.data_ptr()


def test_views_of_an_input_with_an_offset() -> None:
    base = torch.arange(30.0).reshape(5, 6)
    captured = capture(lambda x: x[1:].t(), (base[1:, 1:],))
    x = base.clone()[1:, 1:]
    got = captured.rebuild([x], TorchProgram(captured.graph)(x))
    assert torch.equal(got, x[1:].t())
    assert got.data_ptr() == x[1:].data_ptr()


def test_results_have_eagers_strides() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x.t() + 1, F.relu(y), y.mean(1), (x + 1)[:, 1:]

    y = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    captured = capture(program, (X, y))
    graph = captured.graph
    strides = [graph.type_of(output.value).strides for output in graph.outputs]
    assert strides == [(1, 5), y.stride(), None, None]
    assert graph.type_of(graph.inputs[1].value).strides == y.stride()
    got = TorchProgram(graph)(X, y)
    assert got[1].stride() == y.stride()


def test_one_tensor_returned_twice_is_one_output_and_a_copy_is_another() -> None:
    captured = assert_as_eager(lambda x: (y := x * 2, y, y.clone()), (X,))
    got = captured.rebuild([X], TorchProgram(captured.graph)(X))
    assert got[0] is got[1]
    assert got[2].data_ptr() != got[0].data_ptr()


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


def test_nested_arguments_and_results() -> None:
    def program(pair: Pair, options: dict[str, Any], *, scale: float = 2.0) -> dict[str, Any]:
        total = pair.left * scale + options["b"]
        return {"total": [total, None, 3], "name": "x", "pair": Pair(total + 1, pair.right)}

    args = (Pair(X, X + 1), {"b": X[0], "k": 5})
    captured = assert_as_eager(program, args, {"scale": 0.5})
    assert ConstantResult in {type(leaf) for leaf in captured.results}
    assert captured.flatten((Pair(X, X), {"b": X[0], "k": 5}), {"scale": 0.25}) is None
    assert captured.flatten((Pair(X, X), {"b": X[0], "k": 6}), {"scale": 0.5}) is None
    assert captured.flatten((Pair(X, X),), {}) is None
    flat = captured.flatten((Pair(X, X), {"b": X[0], "k": 5}), {"scale": 0.5})
    assert flat is not None
    assert len(flat) == 3


def test_keyword_arguments_in_any_order() -> None:
    captured = capture(lambda *, a, b: a - b, {"a": X, "b": X * 3})
    flat = captured.flatten((), {"b": X * 3, "a": X})
    assert flat is not None
    assert torch.equal(TorchProgram(captured.graph)(*flat)[0], X - X * 3)


def test_literals_are_constants_and_attributes_are_inputs() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shift = torch.arange(5.0)

        def forward(self, x: Tensor) -> Tensor:
            return (x + self.shift) * torch.tensor([1.0, 2, 3, 4, 5]) + torch.tensor(0.5)

    captured = assert_as_eager(Shifted(), (X,))
    assert len(captured.graph.constants) == 1
    assert [type(b) for b in captured.bindings] == [ConstantTensor, UserLeaf]


def test_a_large_literal_stays_outside_the_graph() -> None:
    values = list(range(40_000))
    captured = assert_as_eager(lambda x: x + torch.tensor(values), (torch.ones(40_000),))
    assert not captured.graph.constants
    assert captured.graph.inputs[0].kind is InputKind.CONSTANT


def test_functions_bind_the_tensors_they_close_over() -> None:
    weight = torch.randn(5, 5)
    captured = assert_as_eager(lambda x: x @ weight, (X,))
    (binding,) = [b for b in captured.bindings if isinstance(b, ConstantTensor)]
    assert torch.equal(binding.tensor, weight)


def test_random_operators_stay_with_torch() -> None:
    def program(x: Tensor) -> Tensor:
        return F.dropout(x, 0.5, training=True) + torch.rand_like(x)

    captured = assert_as_eager(program, (X,))
    codes = [n.attr("code") for n in captured.graph.nodes if n.op == "framework"]
    assert codes == ["random", "random"]


def test_unknown_operators_stay_with_torch_and_say_why() -> None:
    captured = assert_as_eager(lambda x: (x * 2).sort(-1, descending=True)[0] + 1, (X,))
    (node,) = [n for n in captured.graph.nodes if n.op == "framework"]
    assert node.attr("target") == "aten.sort.default"
    assert node.attr("code") == "no-lowering"
    assert "aten.sort.default" in str(node.attr("sentence"))


def test_constant_framework_nodes_are_folded() -> None:
    captured = assert_as_eager(lambda x: x + torch.ones(5).cumsum(0), (X,))
    assert ops(captured) == {"add": 1}
    assert len(captured.graph.constants) == 1


def test_constants_of_any_extents_are_not_computed() -> None:
    graph = capture(lambda x: x + torch.zeros(1 << 20, 1 << 20).max(), (X,)).graph
    assert [node.op for node in graph.nodes] == ["full", "amax", "add"]


def test_grad_modes_and_autocast_are_read_through() -> None:
    module = nn.Linear(5, 3)

    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y = F.linear(x, module.weight)
        with torch.autocast("cpu", torch.bfloat16):
            z = F.linear(x, module.weight)
        return y, z

    captured = assert_as_eager(program, (X,))
    assert ops(captured)["linear"] == 2


def test_capture_leaves_the_model_alone() -> None:
    module = Mlp().train()
    before = copy.deepcopy(module.state_dict())
    capture(module, (X,))
    assert module.training
    assert all(torch.equal(module.state_dict()[k], v) for k, v in before.items())
    assert all(p.requires_grad for p in module.parameters())


@pytest.mark.parametrize(
    ("program", "x", "words"),
    [
        (lambda x: torch.fft.rfft(x) * 2, X, "view_as_real"),
        (lambda x: x[x > 3], X, "eager"),
        (lambda x: x * x.sum().item(), X, "_local_scalar_dense|item|number"),
        (lambda x: x + 1, X.to(torch.complex64), "complex64"),
        (lambda x: torch.ones(3, dtype=torch.uint16), X, "uint16"),
        (lambda x: x if x.sum() > 0 else -x, X, "torch.export cannot capture"),
        (lambda x: x.reshape((1,) * 9 + (4, 5)), X, "rank 11"),
    ],
)
def test_what_cannot_be_captured_says_so(program: Any, x: Tensor, words: str) -> None:
    with pytest.raises(UnsupportedModel, match=words):
        capture(program, (x,))


@pytest.mark.parametrize(
    ("program", "offset"),
    [
        (lambda x: (h := x * 2, h[:, 0]), 0),
        (lambda x: (x.exp().t(), F.relu(h := x + 1)[1:, 2], h), None),
        (lambda x: ((h := x.t() + 1)[2], h), 2),
        (lambda x: (h := x + 1, h.view(2, 10), h.t(), h), 0),
        (lambda x: (h := x + 1, h[3, 4]), 19),
    ],
    ids=["column", "none", "row of a transposed one before it", "other shapes", "element"],
)
def test_results_that_show_another_result_do_so(program: Any, offset: int | None) -> None:
    captured = capture(program, (X,))
    views = [leaf for leaf in captured.results if isinstance(leaf, OutputView)]
    assert [leaf.offset for leaf in views[:1]] == ([] if offset is None else [offset])
    inputs = captured.bind(program, captured.flatten([X], {}) or [])
    got, want = captured.rebuild(inputs, TorchProgram(captured.graph)(*inputs)), program(X)
    for ours, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert not views or ours.stride() == theirs.stride()
    shared = [{t.untyped_storage().data_ptr() for t in ts} for ts in (got, want)]
    assert not views or [len(s) for s in shared] == [1, 1]


def test_a_model_that_branches_on_values_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    def program(x: Tensor) -> Tensor:
        return x * 2 if int(x.sum().item()) == 1 else x

    with pytest.raises(UnsupportedModel, match="GuardOnDataDependentSymNode"):
        capture(program, (X,))
    assert capfd.readouterr() == ("", "")


class Stateful(nn.Module):
    """Counts its calls in the way that `kind` says."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.calls, self.log, self.by_name = kind, 0, [], {"calls": 0}
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.inner = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        match self.kind:
            case "number":
                self.calls += 1
            case "list":
                self.log.append(len(self.log))
            case "mapping":
                self.by_name["calls"] += 1
            case "new":
                self.seen = True
            case "child":
                self.inner.calls = 1
            case "buffer":
                self.count += 1
        return x * (1 + self.calls + len(self.log) + self.by_name["calls"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("number", "calls"),
        ("list", "log"),
        ("mapping", "by_name"),
        ("new", "seen"),
        ("child", "inner.calls"),
    ],
)
def test_a_model_that_writes_to_its_attributes_is_refused(kind: str, name: str) -> None:
    model = Stateful(kind)
    with pytest.raises(UnsupportedModel, match=f"changes its attributes.*: {name}"):
        capture(model, (X,))
    assert model.forward.__func__ is Stateful.forward


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (lambda xs: (xs.append(xs[0] + 1), xs[0] * 2)[1], [X]),
        (lambda d: d.update(y=d["x"] + 1) or d["x"], {"x": X}),
        (lambda d: d["list"].pop() * 2, {"list": [X, X]}),
        (lambda xs: xs.__setitem__(0, xs[0] + 1) or xs[0], [X]),
    ],
    ids=["append", "update", "pop", "replace"],
)
def test_a_model_that_changes_its_arguments_is_refused(program: Any, given: Any) -> None:
    with pytest.raises(UnsupportedModel, match="changes a list, dict or cache among its arguments"):
        capture(program, (given,))


class Store:
    """A class among the results that makes a tensor of its own, as caches of `transformers` do."""

    def __init__(self, kept: Tensor) -> None:
        self.kept = torch.cat([torch.tensor([]), kept], -2)


def test_results_of_a_class_that_makes_tensors_when_it_is_built() -> None:
    pytree.register_pytree_node(Store, lambda s: ([s.kept], None), lambda leaves, _: Store(*leaves))

    def program(x: Tensor) -> tuple[Tensor, Store]:
        y = x * 2
        y.add_(1)  # is made functional: torch traces the program a second time
        return y, Store(y)

    try:
        captured = assert_as_eager(program, (X,))
    finally:
        pytree._deregister_pytree_node(Store)
    assert not targets(captured)


def test_tensors_among_arguments_may_be_written() -> None:
    captured = capture(lambda xs: xs[0].add_(1) * 2, ([X.clone()],))
    assert len(captured.mutations) == 1


def test_a_result_written_into_a_tensor_of_its_own_is_no_input() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        made = torch.add(x, 1, out=torch.empty(4, 5))
        return made, torch.mul(x, 2, out=y)

    captured = assert_as_eager(program, (X, X.clone()))
    assert captured.results == (FreshResult(1), SameInput(1))


def test_state_in_buffers_and_unchanged_containers_are_captured() -> None:
    assert_as_eager(Stateful("none"), (X,))
    assert len(capture(Stateful("buffer"), (X,)).mutations) == 1


def test_recurrent_layers_stay_with_torch_and_are_not_random() -> None:
    captured = assert_as_eager(nn.LSTM(5, 3, batch_first=True).eval(), (X[None],))
    codes = [n.attr("code") for n in captured.graph.nodes if n.op == "framework"]
    assert codes == ["no-lowering"]


def test_threads_may_capture_at_the_same_time() -> None:
    models = [Mlp().eval() for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        graphs = list(pool.map(lambda model: capture(model, (X,)).graph.digest, models))
    assert len(set(graphs)) == 1
