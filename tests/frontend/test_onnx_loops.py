"""ONNX loops whose rounds are known are the nodes they run; others are refused with the way out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper, save

import graph_autofusion as gaf
from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.files import read_model

F, I64, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, info = helper.make_node, helper.make_tensor_value_info
CUBES = ("all", "stacked")  # results with a dimension more
X = torch.arange(6.0).reshape(2, 3)


def known(name: str, value: object) -> NodeProto:
    return node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))


def body(nodes: Sequence[NodeProto], outputs: Sequence[tuple[str, list[int]]]) -> GraphProto:
    """A loop's body: round, condition and `state` in; `again`, and `outputs` out."""
    given = [info("round", I64, []), info("goes_on", B, []), info("state", F, [2, 3])]
    made = [info("again", B, []), *(info(name, F, shape) for name, shape in outputs)]
    return helper.make_graph(list(nodes), "body", given, made)


def model_file(folder: Path, nodes: Sequence[NodeProto], *outputs: str) -> Path:
    given = [info("x", F, [2, 3])]
    made = [info(name, F, [f"{name}{d}" for d in range(3 if name in CUBES else 2)])
            for name in outputs]  # fmt: skip
    graph = helper.make_graph(list(nodes), "g", given, made)
    path = folder / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def check(path: Path) -> list[str]:
    """The file's module and the captured graph give what ONNX Runtime does; the graph's ops."""
    expected = onnxruntime.InferenceSession(path).run(None, {"x": X.numpy()})
    file = read_model(path)
    found = file.module(X)
    found = found if isinstance(found, tuple) else (found,)
    for have, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-6)
    return [n.op for n in gaf.capture(path).nodes]


DOUBLE = (
    node("Cast", ["round"], ["number"], to=F),
    node("Add", ["state", "state"], ["twice"]),
    node("Add", ["twice", "number"], ["next"]),
    node("Add", ["next", "x"], ["seen"]),  # of the graph around
)


def test_a_number_of_rounds_with_state_and_stacked_results(tmp_path: Path) -> None:
    inner = body(
        [*DOUBLE, node("Identity", ["goes_on"], ["again"])], [("next", [2, 3]), ("seen", [2, 3])]
    )
    nodes = [known("rounds", 3), known("yes", True),
             node("Loop", ["rounds", "yes", "x"], ["last", "all"], body=inner)]  # fmt: skip
    assert "framework" not in check(model_file(tmp_path, nodes, "last", "all"))


def test_a_condition_on_what_is_known_ends_the_loop(tmp_path: Path) -> None:
    inner = body(
        [*DOUBLE, known("most", 2), node("Less", ["round", "most"], ["again"])], [("next", [2, 3])]
    )
    nodes = [known("yes", True), node("Loop", ["", "yes", "x"], ["last"], body=inner)]
    check(model_file(tmp_path, nodes, "last"))


def test_no_round_at_all_gives_what_came_in(tmp_path: Path) -> None:
    inner = body([*DOUBLE, node("Identity", ["goes_on"], ["again"])], [("next", [2, 3])])
    nodes = [known("rounds", 0), known("yes", True),
             node("Loop", ["rounds", "yes", "x"], ["state0"], body=inner),
             node("Neg", ["state0"], ["last"])]  # fmt: skip
    check(model_file(tmp_path, nodes, "last"))


def test_a_loop_that_the_data_end_is_refused_with_the_way(tmp_path: Path) -> None:
    inner = body(
        [*DOUBLE, node("ReduceSum", ["next"], ["total"], keepdims=0), known("most", np.float32(9)),
         node("Less", ["total", "most"], ["again"])], [("next", [2, 3])])  # fmt: skip
    nodes = [known("yes", True), node("Loop", ["", "yes", "x"], ["last"], body=inner)]
    path = model_file(tmp_path, nodes, "last")
    with pytest.raises(UnsupportedModel, match=r"depends on the data.*Export the model without"):
        gaf.capture(path)


@pytest.mark.parametrize("with_work", [True, False])
def test_an_endless_loop_is_refused(tmp_path: Path, with_work: bool) -> None:
    steps = DOUBLE if with_work else (node("Identity", ["state"], ["next"]),)
    inner = body([*steps, node("Identity", ["goes_on"], ["again"])], [("next", [2, 3])])
    nodes = [known("yes", True), node("Loop", ["", "yes", "x"], ["last"], body=inner)]
    with pytest.raises(UnsupportedModel, match="more than 20000 nodes"):
        read_model(model_file(tmp_path, nodes, "last")).module(X)


def test_too_many_rounds_are_refused_before_the_first(tmp_path: Path) -> None:
    unfit = known("unfit", np.ones((5, 7), np.float32))  # no round can be run
    inner = body([unfit, node("Add", ["state", "unfit"], ["next"]),
                  node("Identity", ["goes_on"], ["again"])], [("next", [2, 3])])  # fmt: skip
    nodes = [known("rounds", 1 << 40), known("yes", True),
             node("Loop", ["rounds", "yes", "x"], ["last"], body=inner)]  # fmt: skip
    with pytest.raises(UnsupportedModel, match="more than 20000 nodes"):
        read_model(model_file(tmp_path, nodes, "last")).module(X)


def test_graphs_side_by_side_may_share_names(tmp_path: Path) -> None:
    """Both branches call their result `y` and read the same numbers; each keeps its own."""
    made = [info("y", I64, [])]
    more = helper.make_graph([node("Add", ["two", "three"], ["y"])], "more", [], made)
    less = helper.make_graph([node("Sub", ["two", "three"], ["y"])], "less", [], made)
    nodes = [
        *(known(name, value) for name, value in (("two", 2), ("three", 3))),
        *(known(name, value) for name, value in (("yes", True), ("no", False))),
        node("If", ["yes"], ["sum"], then_branch=more, else_branch=less),
        node("If", ["no"], ["difference"], then_branch=more, else_branch=less),
        *(node("Cast", [name], [f"{name}_f"], to=F) for name in ("sum", "difference")),
        node("Mul", ["x", "sum_f"], ["a"]),
        node("Add", ["a", "difference_f"], ["z"]),
    ]
    check(model_file(tmp_path, nodes, "z"))


def test_sequences_are_kept_apart_and_joined(tmp_path: Path) -> None:
    nodes = [
        node("Neg", ["x"], ["n"]),
        node("SequenceConstruct", ["x", "n"], ["pair"]),
        known("first", 0),
        node("Exp", ["x"], ["e"]),
        node("SequenceInsert", ["pair", "e", "first"], ["three"]),
        known("last", -1),
        node("SequenceAt", ["three", "last"], ["picked"]),
        node("SequenceErase", ["three", "first"], ["two"]),
        node("ConcatFromSequence", ["three"], ["joined"], axis=1),
        node("ConcatFromSequence", ["two"], ["stacked"], axis=0, new_axis=1),
    ]
    check(model_file(tmp_path, nodes, "picked", "joined", "stacked"))


def test_a_sequence_that_begins_empty_has_a_known_length(tmp_path: Path) -> None:
    nodes = [
        node("SequenceEmpty", [], ["none"]),
        node("SequenceInsert", ["none", "x"], ["one"]),
        node("SequenceInsert", ["one", "x"], ["two"]),
        node("SequenceLength", ["two"], ["length"]),
        node("Cast", ["length"], ["number"], to=F),
        node("Mul", ["x", "number"], ["y"]),
    ]
    check(model_file(tmp_path, nodes, "y"))
