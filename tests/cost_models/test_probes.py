"""Probes touch the bytes they are asked for; rooflines count what a nest does."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import torch

import graph_autofusion as gaf
from cost_models.probes import Probes, has_bf16_dot, probe_source
from cost_models.roofline import nest_bytes, nest_operations
from kernel_gen.codegen.cpu.registry import templates as cpu_templates
from kernel_gen.fusion.candidates import candidates
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.runtime.host import host_target


@pytest.mark.parametrize(("reads", "writes"), [(10_000, 20_000), (0, 4096), (4096, 0), (3, 5)])
def test_a_copy_writes_all_of_its_output(tmp_path: Path, reads: int, writes: int) -> None:
    probes = Probes(1, tmp_path)
    runs = probes.copies(reads, writes)
    assert set(runs) == {"copy", "stream"}
    for run in runs.values():
        run()


def test_both_copies_write_the_last_vector(tmp_path: Path) -> None:
    probes = Probes(2, tmp_path)
    width = host_target().vector_bytes
    for name in ("gaf_copy_plain", "gaf_copy_stream"):
        source = torch.full((64 * width // 4,), 1.0)
        memory = torch.zeros(65 * width // 4)
        start = -memory.data_ptr() % width
        getattr(probes._library, name)(
            ctypes.c_void_p(source.data_ptr() // width * width),
            ctypes.c_void_p(memory.data_ptr() + start),
            *(ctypes.c_longlong(n) for n in (60, 64, 4)),
            2,
        )
        written = memory[start // 4 : start // 4 + 64 * width // 4]
        assert bool((written != 0).all())


def test_the_fma_probe_counts_its_operations(tmp_path: Path) -> None:
    run, operations = Probes(1, tmp_path).fma("float32")
    run()
    assert operations > 1e6


def test_the_function_probe_counts_its_elements(tmp_path: Path) -> None:
    run, elems = Probes(1, tmp_path).function("exp")
    run()
    assert elems > 1e5


def test_every_level_of_x86_has_a_text() -> None:
    import dataclasses

    base = host_target()
    wide = dataclasses.replace(
        base, isa="x86-64-v4", vector_bytes=64, features=("avx512bf16", "avx512vnni")
    )
    assert has_bf16_dot(wide)
    assert "_mm512_dpbf16_ps" in probe_source(wide)
    narrow = dataclasses.replace(base, isa="x86-64", vector_bytes=16, features=())
    assert "movntps((float" in probe_source(narrow)
    assert "builtin_ia32" not in probe_source(wide, clang=True)


def nests(function: object, *inputs: torch.Tensor) -> list[LoopNest]:
    graph = gaf.capture(function, inputs)  # type: ignore[arg-type]
    target = host_target()
    found = candidates(graph, tuple(cpu_templates(target)), target)
    whole = [c for c in found.groups if len(c.group.nodes) == len(graph.nodes)]
    return [candidate.lowered.nest for candidate in whole]


def test_a_nest_counts_operands_once_and_multiply_adds_twice() -> None:
    (nest,) = nests(lambda x, w: torch.relu(x @ w), torch.randn(8, 16), torch.randn(16, 4))
    assert nest_bytes(nest) == 4 * (8 * 16 + 16 * 4 + 8 * 4)
    assert nest_operations(nest) >= 2 * 8 * 16 * 4 + 8 * 4


def test_of_a_table_a_nest_reads_the_rows_it_asks_for() -> None:
    found = nests(lambda t, i: torch.relu(t[i]), torch.randn(1000, 8), torch.tensor([3, 5]))
    assert found
    assert all(nest_bytes(nest) < 1000 for nest in found)
