"""How the framework is timed."""

from __future__ import annotations

from pathlib import Path

from tuner_jobs import add_relu_graph

from kernel_gen.records import Measurement
from tuner.contest import GraphTask
from tuner.program_bench import PlanBench

_PAGE = 4096


def minor_faults(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def test_the_framework_need_not_fault_its_outputs_in_again() -> None:
    elems = 1 << 21
    task, pages = GraphTask(add_relu_graph(elems)), elems * 4 // _PAGE
    bench = PlanBench((0,))
    try:
        bench.time_graphs([task])
        pid = bench.child_pid
        assert pid is not None
        before = minor_faults(pid)
        (found,) = bench.time_graphs([task])
        assert isinstance(found, Measurement)
        assert len(found.samples_us) >= 5
        assert minor_faults(pid) - before < 3 * pages
    finally:
        bench.close()
