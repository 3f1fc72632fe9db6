"""The long run over random graphs: a few of its seeds, and that it finds, keeps and shrinks what is
wrong."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_gen.ir import evaluate_elementwise
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import TensorType, ValueDomain
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.soak.fuzz import child
from tests.soak.fuzz.batch import Found, OnSeed, check_cases
from tests.soak.fuzz.cases import FuzzCase, fuzz_case
from tests.soak.fuzz.child import Batch, checked
from tests.soak.fuzz.run import Run
from tests.soak.fuzz.shrink import shrunk
from tests.strategies import random_input


def test_the_first_seeds_are_right(kept_compiler: Compiler) -> None:
    found = check_cases(map(fuzz_case, range(12)), host_target("x86-64"), kept_compiler)
    assert found.failures == {}
    assert found.tried["plan"] > 1
    assert sum(n for what, n in found.tried.items() if what.startswith("kernel ")) > 12


def test_what_differs_from_the_reference_fails_its_seed(
    kept_compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [fuzz_case(seed) for seed in range(12)]
    multiplying = {
        case.seed
        for case in cases
        for node in case.graph.nodes
        if node.op == "mul" or OPS[node.op].kind is OpKind.COMPOSITE
    }
    monkeypatch.setitem(
        evaluate_elementwise.ELEMENTWISE, "mul", lambda x, y: np.multiply(x, y) + x.dtype.type(1)
    )
    found = check_cases(cases, host_target("x86-64"), kept_compiler)
    assert found.failures
    assert found.failures.keys() <= multiplying < {case.seed for case in cases}


def test_a_failing_graph_shrinks_to_the_op_that_is_wrong() -> None:
    case = next(
        c for c in map(fuzz_case, range(100)) if "softmax" in _ops(c) and len(c.graph.nodes) > 5
    )
    smallest, why = shrunk(case, lambda c: "still" if "softmax" in _ops(c) else None, "first")
    assert (_ops(smallest), why) == (["softmax"], "still")
    assert [i.dtype.itemsize for i in smallest.inputs] == [
        smallest.graph.type_of(i.value).dtype.bytes for i in smallest.graph.inputs
    ]


def _ops(case: FuzzCase) -> list[str]:
    return [node.op for node in case.graph.nodes]


def _dying(at: int) -> Any:
    """A check that dies at a seed."""

    def check(cases: Iterable[FuzzCase], target: Target, compiler: Compiler, on: OnSeed) -> Found:
        found = Found()
        for case in cases:
            on(case.seed)
            if case.seed == at:
                os.kill(os.getpid(), signal.SIGKILL)
            found.tried["graph"] += 1
        return found

    return check


def test_a_crash_is_the_failure_of_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "check_cases", _dying(at=2))
    batches = [Batch((1, 2, 3), "x86-64", tmp_path), Batch((4, 5), "x86-64", tmp_path)]
    found = dict(checked(batches, jobs=2))
    assert found[batches[0]].failures == {2: "the process ended with -9"}
    assert (tmp_path / "2" / "died.json").read_text() == fuzz_case(2).graph.to_json()
    assert found[batches[1]] == Found({}, Counter(graph=2))


def test_a_run_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "check_cases", _dying(at=3))
    Run(tmp_path, ["x86-64"], 2, resume=False).all(range(5), jobs=1)
    again = Run(tmp_path, ["x86-64"], 2, resume=True)
    assert (again.done, again.failed) == (set(range(5)), {3})
    again.all(range(6), jobs=1)
    assert again.tried["graph"] == 5
    assert "6 graphs, 1 failed: [3]" in again.summary()
    assert Run(tmp_path, ["x86-64"], 2, resume=False).done == set()


def test_a_product_reads_rows_along_an_axis_that_a_view_has_split(kept_compiler: Compiler) -> None:
    """A left operand in place at (13·i + j) // 17, which named no known function."""
    b = GraphBuilder()
    finite = ValueDomain(finite=True)
    shapes = ((13, 130), (130, 17), (13,))
    x, w, y = (b.input(TensorType(DType.F32, shape), domain=finite) for shape in shapes)
    rows = b.op("reshape", b.op("linear", x, b.op("permute", w, dims=(1, 0))), shape=(17, 1, 13))
    b.output(b.op("atan2", rows, b.op("add", b.op("abs", y), b.constant(np.array(0.5, "f")))))
    graph = b.build()
    numbers = np.random.default_rng(0)
    inputs = [random_input(numbers, graph.type_of(item.value), item) for item in graph.inputs]
    case = FuzzCase(2998, graph, inputs, "fast")
    found = check_cases([case], host_target("x86-64"), kept_compiler)
    assert found.failures == {}
    assert found.tried["kernel matmul"]
