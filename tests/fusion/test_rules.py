"""Rules: their file, what they match, and what they make of a program."""

from __future__ import annotations

import numpy as np
import pytest
from fusion_cases import parameter, random_inputs, single, tensor

from kernel_gen.errors import InvalidRules
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.rules import Action, load_rules, parse_rules
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.target import DeviceKind


def rules(*lines: str):
    return parse_rules("version: 1\nrules:\n" + "\n".join(f"  - {line}" for line in lines))


def ops(graph):
    return [node.op for node in graph.nodes]


def test_builtin_rules_load_and_say_why():
    builtin = load_rules()
    assert len(builtin) >= 3
    assert all(rule.why and rule.line > 1 for rule in builtin)


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("version: 2", 1, "version"),
        ("version: 1\nrules:\n  - {name: a, match: {op: relu}}", 3, "action"),
        ("version: 1\nrules:\n  - {name: a, action: fly, match: {op: relu}}", 3, "fly"),
        ("version: 1\nrules:\n\n  - {name: a, action: expand, match: {op: nope}}", 4, "nope"),
        ("version: 1\nrules:\n  - {name: A b, action: none}", 3, "A b"),
        ("version: 1\nrules:\n  - name: a\n    action: expand\n    colour: red", 5, "colour"),
        ("version: 1\nrules:\n  - name: a\n    name: b", 4, "twice"),
        ("version: 1\nrules:\n  - {name: a, action: fuse, match: {op: relu}}", 3, "producer"),
        (
            "version: 1\nrules:\n  - {name: a, action: none}\n  - {name: a, action: none}",
            4,
            "line 3",
        ),
        ("version: 1\nrules:\n  - {name: a, match: {op: relu, min_elems: -1}}", 3, "action"),
        ("version: 1\nrules: [", 2, "YAML"),
        ("- 1", 1, "mapping"),
        ("version: 1\nrules: !!python/object:os.system [ls]", 2, "mapping"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text, line, word):
    with pytest.raises(InvalidRules, match=rf"line {line}: .*{word}|line {line}"):
        parse_rules(text)


def test_a_users_rule_replaces_or_turns_off_the_builtin_one():
    text = "version: 1\nrules:\n  - {name: merge-projections, action: none}\n"
    text += "  - {name: fold-batch-norm, action: expand, match: {op: attention}}\n"
    found = {rule.name: rule for rule in load_rules(text)}
    assert "merge-projections" not in found
    assert found["fold-batch-norm"].action is Action.EXPAND


def test_expand_keeps_values_and_meaning():
    graph = single("silu", tensor(4, 6))
    ruled = apply_rules(graph, rules("{name: e, action: expand, match: {op: silu}}"))
    assert ruled.fired == ("e",)
    assert "silu" not in ops(ruled.program)
    inputs = random_inputs(graph)
    np.testing.assert_array_equal(evaluate(graph, inputs), evaluate(ruled.program, inputs))


def test_conditions_on_size_type_and_neighbours():
    graph = single("silu", tensor(4, 6))
    for condition in ("min_elems: 25", "max_elems: 23", "dtype: bf16", "producer: exp"):
        text = f"{{name: e, action: expand, match: {{op: silu, {condition}}}}}"
        assert apply_rules(graph, rules(text)).fired == ()
    text = "{name: e, action: expand, match: {op: [gelu, silu], min_elems: 24, dtype: [f32]}}"
    assert apply_rules(graph, rules(text)).fired == ("e",)


def projections(op="linear", bias=True):
    b = GraphBuilder()
    x = b.input(tensor(5, 6))
    for width in (4, 8, 2):
        shape = (width, 6) if op == "linear" else (6, width)
        operands = [parameter(b, *shape), *([parameter(b, width)] if bias else [])]
        b.output(b.op("reshape", b.op(op, x, *operands), shape=(5 * width,)))
    return b.build()


@pytest.mark.parametrize(("op", "bias"), [("linear", True), ("linear", False), ("matmul", False)])
def test_equal_input_products_merge_over_constant_weights(op, bias):
    graph = projections(op, bias)
    ruled = apply_rules(graph, load_rules())
    assert ruled.fired == ("merge-projections",)
    assert ops(ruled.program).count(op) == 1
    assert ops(ruled.program).count("slice") == 3
    inputs = random_inputs(graph)
    for want, got in zip(evaluate(graph, inputs), evaluate(ruled.program, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_products_of_call_time_weights_do_not_merge():
    b = GraphBuilder()
    x = b.input(tensor(5, 6))
    for _ in range(2):
        y = b.op("matmul", x, b.input(tensor(6, 4)))
        b.output(b.op("reshape", y, shape=(20,)))
    assert apply_rules(b.build(), load_rules()).fired == ()


def test_never_fuse_and_fuse_name_pairs():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    b.output(b.op("tanh", b.op("exp", b.op("softmax", x, dim=1))))
    graph = b.build()
    apart = apply_rules(graph, rules("{name: n, action: never-fuse, match: {op: exp}}"))
    assert apart.constraints.apart == {frozenset((0, 1)), frozenset((1, 2))}
    text = "{name: f, action: fuse, match: {op: exp, consumer: tanh}}"
    both = apply_rules(graph, rules(text))
    assert both.constraints.together == {frozenset((1, 2))}
    assert both.fired == ("f",)


def test_a_node_that_is_kept_alone_shares_no_kernel_but_with_its_fills():
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    two = b.op("full", shape=(), dtype="f32", value=2.0)
    b.output(b.op("mul", x, two))
    b.output(b.op("exp", x))
    ruled = apply_rules(b.build(), rules("{name: n, action: never-fuse, match: {op: mul}}"))
    places = {node.op: i for i, node in enumerate(ruled.program.nodes)}
    assert ruled.constraints.apart == {frozenset((places["mul"], places["exp"]))}


@pytest.mark.parametrize("device", DeviceKind)
def test_a_rule_holds_on_the_devices_that_it_names(device: DeviceKind) -> None:
    rule = """
version: 1
rules:
  - {name: apart, action: framework, match: {op: softmax, device: [ascend, ascend-sim]}}
"""
    ruled = apply_rules(single("softmax", tensor(4, 8), dim=1), parse_rules(rule), device)
    assert ruled.fired == (() if device is DeviceKind.CPU else ("apart",))
