"""What the project wants to reach, and whether a run of the suite has reached it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.suite.peers import CONTENDERS, OURS
from benchmarks.suite.records import BALANCED, Result, geomean
from benchmarks.suite.workloads import TRANSFORMERS_AND_CNNS

INDUCTORS = ("inductor", "inductor-max")
PEERS = tuple(name for name in CONTENDERS if name != OURS)


@dataclass(frozen=True, slots=True)
class Target:
    """One row: what is asked, what was found, and whether that is enough (None: not measured)."""

    figure: str
    target: str
    found: str
    met: bool | None


def targets(
    results: Sequence[Result], overhead_us: float | None = None, search: Path | None = None
) -> list[Target]:
    """All rows that these results speak of. `search` is the record of `benchmarks.search`."""
    rows = [_floors, _against_inductor, _against_best, _against_eager, _fusion, _known, _memory]
    found = [row(results) for row in rows]
    return [*found, _overhead(overhead_us), _search(search)]


def _floors(results: Sequence[Result]) -> Target:
    shares = {r.workload: r.floor_share for r in results if r.floor_share is not None}
    low = sorted((share, name) for name, share in shares.items() if share < BALANCED)
    short = ", ".join(f"{name} {share:.0%}" for share, name in low)
    count = f"{len(shares) - len(low)} of {len(shares)}"
    return Target(
        "time against floor",
        f"at least {BALANCED:.0%} of it everywhere",
        f"{count} workloads" + (f"; below: {short}" if short else ""),
        None if not shares else not low,
    )


def _against_inductor(results: Sequence[Result]) -> Target:
    ratios = {r.workload: r.fastest(INDUCTORS) for r in results}
    return _compared(
        "geomean against the faster of Inductor's modes",
        "≥ 1.7, none below 0.97",
        ratios,
        lambda mean, known: mean >= 1.7 and min(known) >= 0.97,
    )


def _against_best(results: Sequence[Result]) -> Target:
    ratios = {r.workload: r.fastest(PEERS) for r in results}
    return _compared(
        "geomean against the best of all peers",
        "≥ 1.25, at least 90 % of workloads ≥ 1.0",
        ratios,
        lambda mean, known: mean >= 1.25 and sum(r >= 1 for r in known) >= 0.9 * len(known),
    )


def _compared(
    figure: str,
    target: str,
    ratios: dict[str, float | None],
    enough: Callable[[float, list[float]], bool],
) -> Target:
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    mean = geomean(list(known.values()))
    if mean is None:
        return Target(figure, target, "not measured", None)
    least = min(known, key=lambda name: known[name])
    faster = sum(ratio >= 1 for ratio in known.values())
    found = f"{mean:.2f}; {faster} of {len(known)} ≥ 1.0; least {known[least]:.2f} ({least})"
    return Target(figure, target, found, enough(mean, list(known.values())))


def _against_eager(results: Sequence[Result]) -> Target:
    figure, target = "LayerNorm+ReLU+Linear against unfused eager", "≥ 50 % less time"
    ratio = next((r.ratio("eager") for r in results if r.workload == "ln_relu_mm"), None)
    if ratio is None:
        return Target(figure, target, "not measured", None)
    less = 1 - 1 / ratio
    return Target(figure, target, f"{less:.0%} less", less >= 0.5)


def _fusion(results: Sequence[Result]) -> Target:
    rates = {
        r.workload: float(r.facts["fusion_rate"])
        for r in results
        if r.workload in TRANSFORMERS_AND_CNNS and "fusion_rate" in r.facts
    }
    figure, target = "fusion rate on transformers and CNNs", "≥ 97 %"
    if not rates:
        return Target(figure, target, "not measured", None)
    found = ", ".join(f"{name} {rate:.0%}" for name, rate in rates.items())
    return Target(figure, target, found, min(rates.values()) >= 0.97)


def _known(results: Sequence[Result]) -> Target:
    """The second of our processes meets the plan of the first one in the store."""
    figure = "optimize() on a known graph"
    target = "a hit, 0 trials, ≤ 0.3 s after capture"
    facts = [r.facts for r in results if "optimize_seconds" in r.facts]
    if not facts:
        return Target(figure, target, "not measured", None)
    longest = max(f["optimize_seconds"] - f["capture_seconds"] for f in facts)
    hits = sum(f["cache"] == "hit" and f["trials"] == 0 for f in facts)
    found = f"{hits} of {len(facts)} hits; at most {longest:.2f} s"
    return Target(figure, target, found, hits == len(facts) and longest <= 0.3)


def _memory(results: Sequence[Result]) -> Target:
    figure, target = "arena and outputs", "at most eager's activations"
    over = []
    known = 0
    for r in results:
        if r.effort is None or "arena_bytes" not in r.facts:
            continue
        known += 1
        fresh = r.effort.written_bytes - r.facts.get("in_place_bytes", 0)
        ours = r.facts["arena_bytes"] + fresh
        allowed = max(r.effort.activation_bytes, r.effort.written_bytes)
        over += [f"{r.workload} {ours / allowed:.2f}×"] if ours > allowed else []
    if not known:
        return Target(figure, target, "not measured", None)
    found = f"{known - len(over)} of {known} workloads" + (f"; {', '.join(over)}" if over else "")
    return Target(figure, target, found, not over)


def _overhead(us: float | None) -> Target:
    figure, target = "call overhead, plan of at most 8 tensors", "≤ 10 µs, guards included"
    if us is None:
        return Target(figure, target, "not measured (`benchmarks.overhead`)", None)
    return Target(figure, target, f"{us:.1f} µs", us <= 10)


def _search(path: Path | None) -> Target:
    figure = "tuning one BERT layer, empty database"
    target = "within 5 % of the best of a recorded long search in ≤ 60 s"
    if path is None or not path.exists():
        return Target(figure, target, "not measured (`benchmarks.search`)", None)
    rows = json.loads(path.read_text(encoding="utf-8"))["cases"]
    row = next((row for row in rows if row["case"] == "bert_layer"), None)
    if row is None or row["reference_us"] is None:
        return Target(figure, target, "no recorded search to compare with", None)
    seconds = row["seconds_to_near_best"]
    found = "not within the budget" if seconds is None else f"after {seconds:.0f} s"
    return Target(figure, target, found, seconds is not None and seconds <= 60)
