"""The allow-list of torch operators and the encoding of their arguments."""

from __future__ import annotations

import json

import pytest
import torch

from kernel_gen.errors import InvalidGraph
from kernel_gen.frontend import capture, framework
from kernel_gen.frontend.torch_run import run
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import TensorType

REFUSED = {
    "aten.from_file.default": "allow-list",
    "aten.add_.Tensor": "writes",
    "aten.sort.values": "writes",
    "aten.item.default": "more than tensors",
    "aten._print.default": "allow-list",
    "aten.save.default": "more than tensors",
    "aten.__class__.default": "not aten.name.overload",
    "aten.sort.__globals__": "no operator",
    "aten.nothing_of_the_kind.default": "no operator",
    "os.system.default": "not aten.name.overload",
    "aten.sort.default.__call__": "not aten.name.overload",
    "aten._sparse_coo_tensor_unsafe.default": "allow-list",
    "aten._nested_view_from_buffer.default": "allow-list",
    "aten.set_.source_Tensor": "allow-list|writes",
    "quantized.add.default": "not aten.name.overload",
    "": "not aten.name.overload",
}


@pytest.mark.parametrize("target", sorted(REFUSED))
def test_refused(target: str) -> None:
    with pytest.raises(InvalidGraph, match=REFUSED[target]):
        framework.resolve(target)
    assert not framework.is_allowed(target)


@pytest.mark.parametrize(
    "target", ["aten.sort.default", "aten.lstm.input", "aten._fft_r2c.default", "aten.topk.default"]
)
def test_allowed(target: str) -> None:
    assert str(framework.resolve(target)) == target


def test_a_refused_operator_in_a_graph_does_not_run() -> None:
    builder = GraphBuilder()
    x = builder.input(TensorType(DType.F32, (2,)))
    (y,) = builder.op(
        "framework",
        x,
        out_types=[TensorType(DType.F32, (2,))],
        target="aten.zero_.default",
        args=((("value", 0),), ()),
        code="no-lowering",
        sentence="",
    )
    builder.output(y)
    given = torch.ones(2)
    with pytest.raises(InvalidGraph, match="writes"):
        run(builder.build(), [0], {x: given})
    assert torch.equal(given, torch.ones(2))


def test_arguments_survive_json() -> None:
    tensors = [torch.ones(1), torch.zeros(1)]

    def position(item: object) -> int | None:
        return next((i for i, t in enumerate(tensors) if t is item), None)

    args = [tensors[1], [tensors[0], None], (1, -2), 0.5, True, "same"]
    kwargs = {
        "dtype": torch.bfloat16,
        "memory_format": torch.channels_last,
        "layout": torch.strided,
        "device": torch.device("cpu"),
    }
    encoded = framework.encode(args, kwargs, position)
    plain = json.loads(json.dumps(encoded))
    positional, named = framework.decode(_tuples(plain), tensors)
    assert positional[0] is tensors[1]
    assert positional[1][0] is tensors[0]
    assert positional[2:] == [[1, -2], 0.5, True, "same"]
    assert named == kwargs


def _tuples(value: object) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


@pytest.mark.parametrize(
    "encoded",
    [
        None,
        ((("value", 5),), ()),
        ((("value", -1),), ()),
        ((("complex", 5),), ()),
        ((("complex", 0),), ()),
        ((("eval", "1"),), ()),
        ((), (("x",),)),
        ((("device", "cuda"),), ()),
        ((("dtype", "f99"),), ()),
    ],
)
def test_malformed_arguments_are_refused(encoded: object) -> None:
    with pytest.raises(InvalidGraph, match="framework node"):
        framework.decode(encoded, [torch.ones(1)])  # type: ignore[arg-type]


def test_several_results_and_lists_of_tensors() -> None:
    def program(x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, indices = x.sort(dim=1)
        return values + 1, indices, torch.searchsorted(h, x)

    captured = capture(program, (torch.randn(3, 5), torch.randn(80).sort()[0]))
    found = [n for n in captured.graph.nodes if n.op == "framework"]
    assert [len(n.outputs) for n in found] == [2, 1]
