"""What a simulated run gives: time, pipe utilisation, broken rules, trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_gen.ascend.chips import Chip

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")


@dataclass(frozen=True, slots=True)
class SimFailure:
    """A broken rule: where in the kernel's source (the API call) and with which values.

    `block` is the first block that met it, `count` how often it was met on this line.
    """

    code: str
    file: str
    line: int
    message: str
    block: int = 0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code}: {self.message}"


@dataclass(frozen=True, slots=True)
class SimResult:
    """One simulated run. Times are simulated, from the first block's start to the last one's end;
    the launch itself (`Chip.launch_us`) is not in them. Both are 0 where nothing was timed.

    `pipe_busy` is the share of a core's time for which a pipe was busy, on the core where it is
    highest; `gm_bytes` is what all blocks moved from and to GM, `hbm_bytes` the part beyond L2.
    """

    latency_us: float
    cycles: float
    pipe_busy: Mapping[str, float]
    bounding_pipe: str
    failures: tuple[SimFailure, ...]
    trace: dict[str, Any] | None = None
    instructions: int = 0
    gm_bytes: float = 0.0
    hbm_bytes: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.failures


def to_result(report: Mapping[str, Any], chip: Chip) -> SimResult:
    """The runtime's report as a value."""
    busy = {pipe: float(report["busy"][pipe]) for pipe in PIPES}
    trace = report.get("trace")
    return SimResult(
        latency_us=chip.microseconds(report["cycles"]),
        cycles=float(report["cycles"]),
        pipe_busy=busy,
        bounding_pipe=max(busy, key=lambda pipe: busy[pipe]),
        failures=tuple(_failure(entry) for entry in report["failures"]),
        trace=None if trace is None else chrome_trace(trace, chip),
        instructions=int(report["instructions"]),
        gm_bytes=float(report["gm_bytes"]),
        hbm_bytes=float(report["hbm_bytes"]),
    )


def _failure(entry: Mapping[str, Any]) -> SimFailure:
    return SimFailure(
        entry["code"], entry["file"], entry["line"], entry["message"], entry["block"],
        entry["count"],
    )  # fmt: skip


def chrome_trace(events: Sequence[Sequence[Any]], chip: Chip) -> dict[str, Any]:
    """The events in the form that Perfetto and chrome://tracing read: a process per core, a
    thread per pipe, microseconds. Times are simulated. Begins and ends are whole nanoseconds, which
    is what Perfetto counts: it drops slices of a thread that overlap, by rounding as well."""
    cores: dict[tuple[bool, int], int] = {}
    rows: list[dict[str, Any]] = []
    for name, pipe, cube, block, start, duration, line in events:
        process = cores.setdefault((cube, block), len(cores))
        begin_us = round(chip.microseconds(start), 3)
        end_us = round(chip.microseconds(start + duration), 3)
        rows.append(
            {
                "name": name,
                "cat": "simulated",
                "ph": "X",
                "pid": process,
                "tid": PIPES.index(pipe),
                "ts": begin_us,
                "dur": round(end_us - begin_us, 3),
                "args": {"line": line},
            }
        )
    labels = [
        {
            "name": "process_name",
            "ph": "M",
            "pid": process,
            "args": {"name": f"{'cube' if cube else 'vector'} core, block {block} (simulated)"},
        }
        for (cube, block), process in cores.items()
    ]
    labels += [
        {"name": "thread_name", "ph": "M", "pid": process, "tid": i, "args": {"name": pipe}}
        for process in cores.values()
        for i, pipe in enumerate(PIPES)
    ]
    return {"traceEvents": labels + rows, "displayTimeUnit": "ns"}
