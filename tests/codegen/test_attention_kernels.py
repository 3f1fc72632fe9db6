"""Attention kernels against the reference: graphs of all kinds, levels, threads and schedules."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from kernel_gen.codegen.cpu.attention import AttentionTemplate
from kernel_gen.codegen.cpu.attention.problem import analyse
from kernel_gen.codegen.cpu.attention.tiling import from_schedule, to_schedule
from kernel_gen.errors import Refusal
from kernel_gen.frontend.capture import capture
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import BufferRole
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.kernel import LoadedKernel
from tests.codegen.attention_graphs import (
    BF16,
    F32,
    GRAPHS,
    Program,
    composite,
    grouped,
    keys_across,
    windowed,
)
from tests.codegen.kernel_bench import KernelBench, run_kernel
from tests.codegen.kernel_graphs import GraphCase, case_of, single, tensor

TEMPLATE = AttentionTemplate()
Built = list[tuple[str, LoadedKernel, GraphCase]]


@pytest.fixture(scope="module")
def built(compiler: Compiler, level: Target) -> Built:
    """Each graph at its first seed or at a random point, in one shared object."""
    bench, cases = KernelBench(compiler, level), []
    rng = random.Random(1)
    for name, graph in GRAPHS.items():
        case = case_of(graph())
        nest = case.lowered.nest
        refused = TEMPLATE.refuse(nest, level)
        assert refused is None, f"{name}: {refused}"
        space = TEMPLATE.space(nest, level)
        point = dict(space.seeds[0])
        if (len(cases) + level.vector_bytes // 16) % 2:  # what one level tries, another does not
            point = {p.name: rng.choice(p.choices) for p in space.parameters}
        if isinstance(bench.add_point(nest, TEMPLATE, point), Refusal):
            bench.add(nest, "attention")
        cases.append((f"{name}: {point}", case))
    kernels = bench.build()
    return [(name, k, case) for (name, case), k in zip(cases, kernels, strict=True)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_kernels_agree_with_the_reference(built: Built, threads: int) -> None:
    assert len(built) == len(GRAPHS)
    for name, kernel, case in built:
        try:
            case.check(kernel, threads)
        except AssertionError as wrong:
            raise AssertionError(f"{name}, {threads} threads: {wrong}") from wrong


def _run(
    compiler: Compiler, module: torch.nn.Module, inputs: Sequence[torch.Tensor], **choices: int
) -> torch.Tensor:
    """The whole of a module's graph as one attention kernel of this machine."""
    graph = capture(module, tuple(inputs)).graph
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal), lowered
    bench = KernelBench(compiler, host_target())
    added = bench.add(lowered.nest, "attention", **choices)
    assert not isinstance(added, Refusal), added
    (kernel,) = bench.build()
    known = dict(zip((i.value for i in graph.inputs), inputs, strict=True))
    pairs = zip(lowered.operands, lowered.nest.buffers, strict=True)
    reads = [known[v].numpy() for v, b in pairs if b.role is not BufferRole.OUTPUT]
    return torch.from_numpy(run_kernel(kernel, reads, 2)[0])


class Fused(torch.nn.Module):
    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class ByHand(torch.nn.Module):
    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        scores = (q @ k.transpose(-1, -2) * 0.25).masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, -1) @ v


@pytest.mark.parametrize("module", [Fused(), ByHand()])
@pytest.mark.parametrize("splits", [1, 2])
def test_rows_that_see_no_key_are_as_in_eager(
    compiler: Compiler, module: torch.nn.Module, splits: int
) -> None:
    """Zeros for the fused op, NaN for a softmax by hand; late first keys; NaN and infinities."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, n, 16) for n in (6, 200, 200))
    mask = torch.rand(2, 6, 200) < 0.5
    mask[0, 1] = False
    mask[:, 2, :150] = False  # the first key seen is in a late block
    q[1, 3, 0], q[1, 4, 0] = torch.nan, torch.inf
    v[0, 7, 3] = torch.nan
    keys = {"keys": 64, "splits": splits}
    found = _run(compiler, module, (q, k, v, mask), **keys)
    torch.testing.assert_close(found, module(q, k, v, mask), equal_nan=True, rtol=1e-5, atol=1e-5)


def test_infinite_values_out_of_sight_are_read(compiler: Compiler) -> None:
    """A weight of zero times infinity is NaN, in the columns that hold it."""
    graphs = {
        (199, 0): composite(1, 1, 70, 200, 16, causal=True),
        (3, 150): windowed(1, 170, 16, 9),
    }
    bench, cases = KernelBench(compiler, host_target()), []
    for (key, row), graph in graphs.items():
        inputs = list(case_of(graph).inputs)
        inputs[2][..., key, 5] = np.inf
        cases.append(case_of(graph, inputs))
        bench.add(cases[-1].lowered.nest, "attention", rows=16, keys=64)
        assert np.isnan(evaluate(graph, inputs)[0][..., row, 5]).all()
    for case, kernel in zip(cases, bench.build(), strict=True):
        case.check(kernel)


@pytest.mark.parametrize(
    ("name", "found"),
    [("causal", [(1, False)]), ("sloped", [(21, False)]),
     ("window", [(1, False), (-39, True)]), ("window, either", [(1, False), (0, True)]),
     ("plain", [])],
)  # fmt: skip
def test_keys_in_sight(name: str, found: list[tuple[int, bool]]) -> None:
    """Bounds of row i, less i."""
    problem = analyse(case_of(GRAPHS[name]()).lowered.nest)
    assert not isinstance(problem, Refusal)
    assert [(limit.at.const, limit.begins) for limit in problem.limits] == found


PAIRED: dict[str, Callable[[], Graph]] = {
    "odd extents": lambda: composite(1, 2, 37, 77, 19, 33, dtype=BF16),
    "causal": lambda: composite(1, 2, 90, 131, 24, causal=True, dtype=BF16),
    "keys across": lambda: keys_across(2, 21, 75, 9, 20),
    "one query": lambda: grouped(1, 4, 2, 1, 151, 32, BF16),
}


def test_pairs_of_bf16(compiler: Compiler, level: Target) -> None:
    bench, cases = KernelBench(compiler, level), []
    for name, graph in PAIRED.items():
        case = case_of(graph())
        for splits in (1, 2):
            pairs = {"key": "pairs", "value": "pairs", "keys": 64}
            added = bench.add(case.lowered.nest, "attention", **pairs, splits=splits)
            assert not isinstance(added, Refusal), f"{name}: {added}"
            cases.append(case)
    for case, kernel in zip(cases, bench.build(), strict=True):
        case.check(kernel, 2)


def test_pairs_are_for_what_is_stored_as_bf16() -> None:
    """Computed queries and wide results would lose digits that the kernel keeps."""
    p = Program(BF16)
    q, k, v = (p.op("cast", p.x(1, n, 16), dtype=F32) for n in (20, 30, 30))
    scores = p.op("matmul", p.op("tanh", q), p.swapped(k, 3))
    graph = p.graph(p.op("matmul", p.op("softmax", scores, dim=2), v))
    space = TEMPLATE.space(case_of(graph).lowered.nest, host_target())
    modes = {parameter.name: parameter.choices for parameter in space.parameters}
    assert "pairs" not in modes["key"]
    assert "pairs" not in modes["value"]


@pytest.mark.parametrize("name", ["causal", "grouped decode", "f16 causal", "bf16"])
def test_kernels_for_wider_vectors_compile(compiler: Compiler, name: str) -> None:
    target = replace(host_target(), isa="x86-64-v4", vector_bytes=64)
    bench = KernelBench(compiler, target)
    nest = case_of(GRAPHS[name]()).lowered.nest
    for seed in TEMPLATE.space(nest, target).seeds:
        bench.add_point(nest, TEMPLATE, dict(seed))
    built = compiler.compile_texts([c.source.files[0] for c in bench.candidates], target)
    assert not isinstance(built, Failure), built.message


@pytest.mark.parametrize(("keys", "cols"), [(77, 64), (128, 64), (197, 64), (256, 80), (512, 128)])
def test_first_tiles_waste_few_columns(keys: int, cols: int) -> None:
    """Panels of keys are computed whole: 8×3 vectors of 16 lanes would be 240 columns for 197."""
    target = replace(host_target(), isa="x86-64-v4", vector_bytes=64)
    nest = case_of(composite(2, 4, 64, keys, cols)).lowered.nest
    first = dict(TEMPLATE.space(nest, target).seeds[0])
    width = 16 * int(str(first["tile"]).split("x")[1])
    assert -(-keys // width) * width < 1.2 * keys + 16
    assert cols % width in (0, cols) or -(-cols // width) * width <= 1.2 * cols


def _two_softmaxes() -> Graph:
    p = Program()
    scores = p.op("softmax", p.op("matmul", p.x(8, 4), p.x(4, 9)), dim=1)
    return p.graph(p.op("matmul", p.op("softmax", scores, dim=1), p.x(9, 4)))


def _queries_as_well() -> Graph:
    p = Program()
    q = p.op("relu", p.x(8, 4))
    weights = p.op("softmax", p.op("matmul", q, p.x(4, 9)), dim=1)
    return p.graph(p.op("matmul", weights, p.x(9, 6)), q)


def _over_queries() -> Graph:
    p = Program()
    weights = p.op("softmax", p.op("matmul", p.x(8, 4), p.x(4, 9)), dim=0)
    return p.graph(p.op("matmul", weights, p.x(9, 4)))


def _product_feeds_keys() -> Graph:
    p = Program()
    x = p.x(9, 4)
    weights = p.op("softmax", p.op("matmul", p.x(8, 4), p.swapped(x, 2)), dim=1)
    made = p.op("matmul", weights, x)
    return p.graph(p.op("mul", made, p.op("sum", made, dims=(1,), keepdim=True)))


@pytest.mark.parametrize(
    ("graph", "code"),
    [
        (_two_softmaxes, "attention-reduction"),
        (_queries_as_well, "attention-output"),
        (_over_queries, "not-attention"),
        (_product_feeds_keys, "attention-reduction"),
        (lambda: composite(2, 1, 5, 1, 8), "not-attention"),
        (lambda: single("matmul", tensor(4, 5), tensor(5, 6)), "not-attention"),
    ],
)
def test_other_groups_are_refused(graph: Callable[[], Graph], code: str) -> None:
    refused = TEMPLATE.refuse(case_of(graph()).lowered.nest, host_target())
    assert refused is not None
    assert refused.code == code


def test_a_schedule_is_replayable() -> None:
    nest = case_of(GRAPHS["decode"]()).lowered.nest
    target = host_target()
    for seed in TEMPLATE.space(nest, target).seeds:
        schedule = TEMPLATE.schedule(nest, target, dict(seed))
        assert not isinstance(schedule, Refusal)
        lanes = target.vector_bytes // 4
        assert to_schedule(from_schedule(schedule, lanes)) == schedule
