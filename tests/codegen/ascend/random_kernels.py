"""Random graphs as one kernel each, many kernels to a library: the compiler takes longer to read
the headers than to translate a small kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from kernel_gen.ascend.sim import build
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.fusion.lower import Lowered
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.schedule.schedule import Schedule
from tests.codegen.ascend.ascend_run import (
    CHIP,
    AscendKernel,
    compare,
    generated,
    lowered,
    schedule_of,
)
from tests.strategies import graphs, inputs_for

DTYPES = (
    DType.F32, DType.F16, DType.BF16, DType.I64, DType.I32, DType.I16, DType.I8, DType.U8,
    DType.BOOL,
)  # fmt: skip
_BUILD_SECONDS = 280.0  # long runs share their machine with others
_ROUNDS = 10  # of draws: many graphs are refused by the chip, some come twice


@dataclass(frozen=True, slots=True)
class Case:
    """A graph that the chip can run as one kernel, and inputs for it."""

    graph: Graph
    inputs: list[np.ndarray]
    made: Lowered
    schedule: Schedule


def drawn(wanted: int, number: int) -> list[Case]:
    """`wanted` different graphs, the same for the same `number`."""
    found: dict[str, Case] = {}
    for round_ in range(_ROUNDS):
        for case in _round(2 * wanted, _ROUNDS * number + round_):
            found.setdefault(case.graph.digest, case)
        if len(found) >= wanted:
            break
    return list(found.values())[:wanted]


def _round(examples: int, number: int) -> list[Case]:
    found: list[Case] = []

    @seed(number)
    @settings(
        max_examples=examples, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        graph = data.draw(graphs(max_nodes=5, dtypes=DTYPES))
        inputs = data.draw(inputs_for(graph))
        made = lowered(graph) if graph.nodes else None
        if made is None or isinstance(made, Refusal):
            return
        schedule = schedule_of(made.nest)
        if not isinstance(schedule, Refusal):
            found.append(Case(graph, inputs, made, schedule))

    draw()
    return found


def check(cases: Sequence[Case], workdir: Path) -> None:
    """Builds all kernels at once; each is run with all rules on and compared with the reference.
    A failure names its graph as JSON."""
    symbols = [f"kernel{number}" for number in range(len(cases))]
    sources = [
        generated(case.made.nest, case.schedule, CHIP, symbol)
        for case, symbol in zip(cases, symbols, strict=True)
    ]
    library = build(together(sources), workdir, _BUILD_SECONDS)
    for case, symbol in zip(cases, symbols, strict=True):
        try:
            kernel = AscendKernel(case.made.nest, case.schedule, workdir, built=(library, symbol))
            compare(case.graph, case.inputs, case.made, kernel)
        except AssertionError as wrong:
            wrong.add_note(case.graph.to_json())
            raise


def together(sources: Sequence[KernelSource]) -> dict[str, str]:
    """One unit with all kernels and one with all tiling functions, whose helpers have the same
    names and so get a namespace each."""
    files: dict[str, str] = {}
    kernels: list[str] = []
    tilings = ["#include <cmath>", "#include <stdint.h>"]
    for source in sources:
        (kernel, kernel_text), (header, header_text), (tiling, tiling_text) = source.files[:3]
        files[header] = header_text
        files[f"{kernel}.inc"], files[f"{tiling}.inc"] = kernel_text, tiling_text
        kernels.append(f'#include "{kernel}.inc"')
        tilings += [f"namespace {source.entry}_host {{", f'#include "{tiling}.inc"', "}"]
    files["kernels.cpp"] = "\n".join([*kernels, ""])
    files["tilings.cpp"] = "\n".join([*tilings, ""])
    return files
