"""What a run of the suite records, and its JSON."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.suite.peers import OURS
from benchmarks.suite.reference import Effort

BALANCED = 0.85
"""The share of its floor that a kernel is asked to reach."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One contender on one workload; `missing` says why it has no samples, `wrong` what is wrong
    with its results.

    `median_us`, `min_us`, `spread` (interquartile range over median) and `faults` (minor page
    faults per call) are those of the faster malloc setting; `by_malloc_us` are both medians.
    """

    contender: str
    median_us: float = 0.0
    min_us: float = 0.0
    spread: float = 0.0
    faults: float = 0.0
    malloc: str = ""
    max_error: float = 0.0
    missing: str = ""
    wrong: str = ""
    setup_seconds: float = 0.0
    by_malloc_us: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether it gave right results and times."""
        return not self.missing and not self.wrong


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time a workload can take here: the larger of `memory_us` (its bytes at the rate of
    the better of a plain and a streaming copy) and what the vector units take: `compute_us` (its
    operations at the FMA rate) and `functions_us` (its exponentials and their kin at the rate of
    the project's own, which are multiply-adds for the most part).
    """

    memory_us: float
    compute_us: float
    copy_bytes_per_second: float
    streaming: bool
    operations_per_second: float
    functions_us: float = 0.0

    @property
    def us(self) -> float:
        return max(self.memory_us, self.compute_us + self.functions_us)

    @property
    def bound(self) -> str:
        """What bounds it: "memory", or of the vector units' work the larger part, "compute" or
        "functions"."""
        if self.memory_us >= self.compute_us + self.functions_us:
            return "memory"
        return "compute" if self.compute_us > self.functions_us else "functions"


@dataclass(frozen=True, slots=True)
class Result:
    """One workload in all contenders. `facts` are ours: report, kernels, memory."""

    workload: str
    timings: tuple[Timing, ...]
    effort: Effort | None = None
    floor: Floor | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 0
    complete: bool = True

    def of(self, contender: str) -> Timing | None:
        """The contender's timing, if it has one and its results are right."""
        found = [t for t in self.timings if t.contender == contender and t.counts]
        return found[0] if found else None

    def ratio(self, contender: str) -> float | None:
        """Time of `contender` over ours: above 1, ours is faster."""
        ours, other = self.of(OURS), self.of(contender)
        return other.median_us / ours.median_us if ours and other else None

    def fastest(self, contenders: Sequence[str]) -> float | None:
        """Ratio of the fastest of the contenders to ours."""
        ratios = [r for name in contenders if (r := self.ratio(name)) is not None]
        return min(ratios, default=None)

    @property
    def floor_share(self) -> float | None:
        """Floor over our median: 1 is the machine's limit."""
        ours = self.of(OURS)
        return self.floor.us / ours.median_us if ours and self.floor else None


def geomean(ratios: Sequence[float | None]) -> float | None:
    """Geometric mean of those that are there."""
    known = [ratio for ratio in ratios if ratio is not None]
    return statistics.geometric_mean(known) if known else None


def summary(
    contender: str, samples: Mapping[str, Sequence[Mapping[str, float]]],
    facts: Mapping[str, Mapping[str, Any]],
) -> Timing:  # fmt: skip
    """The timing of the faster malloc setting; wrong in one setting is wrong."""
    problems = [fact["missing"] for fact in facts.values() if fact.get("missing")]
    taken = {setting: values for setting, values in samples.items() if values}
    if not taken:
        return Timing(contender, missing=problems[0] if problems else "no samples were taken")
    medians = {s: statistics.median(v["us"] for v in values) for s, values in taken.items()}
    best = min(medians, key=lambda setting: medians[setting])
    times = [sample["us"] for sample in taken[best]]
    low, _, high = statistics.quantiles(times, n=4) if len(times) > 3 else (medians[best],) * 3
    known = [facts[setting] for setting in taken]
    return Timing(
        contender=contender,
        median_us=medians[best],
        min_us=min(times),
        spread=(high - low) / medians[best],
        faults=statistics.median(sample["faults"] for sample in taken[best]),
        malloc=best,
        max_error=max(float(fact.get("max_error", 0.0)) for fact in known),
        wrong=next((fact["wrong"] for fact in known if fact.get("wrong")), ""),
        setup_seconds=max(float(fact.get("setup_seconds", 0.0)) for fact in known),
        by_malloc_us=medians,
    )


def floor_of(
    effort: Effort, samples: Mapping[str, Sequence[float]], probed: Mapping[str, Any]
) -> Floor:
    """The floor from the medians of the probes (microseconds) and what a run of them does:
    `fma_operations`, and `function_elems` by name."""
    medians = {name: statistics.median(values) for name, values in samples.items()}
    memory_us = min(medians["copy"], medians["stream"])
    rate = probed["fma_operations"] / (medians["fma"] * 1e-6)
    per_elem_us = {name: medians[name] / n for name, n in probed["function_elems"].items()}
    return Floor(
        memory_us=memory_us,
        compute_us=effort.operations / rate * 1e6,
        copy_bytes_per_second=(effort.read_bytes + effort.written_bytes) / (memory_us * 1e-6),
        streaming=medians["stream"] < medians["copy"],
        operations_per_second=rate,
        functions_us=sum(n * per_elem_us[name] for name, n in effort.functions.items()),
    )


def to_json(run: Mapping[str, Any], results: Sequence[Result], targets: Sequence[Any] = ()) -> str:
    """The run's settings, all results with the ratio of each contender to ours, the targets."""
    rows = []
    for result in results:
        row = dataclasses.asdict(result)
        row["ratios"] = {t.contender: result.ratio(t.contender) for t in result.timings}
        row["floor_us"] = result.floor.us if result.floor else None
        row["floor_share"] = result.floor_share
        rows.append(row)
    checked = [dataclasses.asdict(target) for target in targets]
    return json.dumps({"run": dict(run), "results": rows, "targets": checked}, indent=1) + "\n"


def results_from_json(text: str) -> tuple[dict[str, Any], list[Result]]:
    """What `to_json` wrote; raises KeyError or ValueError for anything else."""
    data = json.loads(text)
    return data["run"], [_result(row) for row in data["results"]]


def _result(row: Mapping[str, Any]) -> Result:
    return Result(
        workload=row["workload"],
        timings=tuple(Timing(**timing) for timing in row["timings"]),
        effort=Effort(**row["effort"]) if row["effort"] else None,
        floor=Floor(**row["floor"]) if row["floor"] else None,
        facts=row["facts"],
        rounds=row["rounds"],
        complete=row["complete"],
    )


def machine() -> dict[str, Any]:
    """This machine and what the contenders are made of."""
    from importlib.metadata import PackageNotFoundError, version

    from kernel_gen.runtime.host import host_target

    versions = {}
    for package in ("torch", "onnxruntime", "openvino", "jax", "transformers"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    target = host_target()
    return {
        "model": target.model,
        "isa": target.isa,
        "features": list(target.features),
        "cores": len(os.sched_getaffinity(0)),
        "versions": versions,
    }
