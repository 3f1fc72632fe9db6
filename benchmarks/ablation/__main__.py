"""`python -m benchmarks.ablation [llama] [resnet] [--device cpu] [--output DIR] [--json]`.

Times LLaMA-2-7B's decode and ResNet-50 by fusion strategy and puts the seed article's figures
beside them. Writes ablation.md, .json, .svg and .png into `--output`; another device than `cpu`
gets files of its own. A run that was cut goes on: on `cpu` with the plans in the store, on a
simulated device with `--resume` and the rows and kernels under build/ablation.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from benchmarks.ablation.measure import Ablation, Plan, Row, ablate
from benchmarks.ablation.programs import IMAGES, PROGRAMS, programs_of
from benchmarks.ablation.simulated import ablate_simulated
from benchmarks.plotting import plot_style, save_figure
from benchmarks.suite.records import machine

_INTERRUPTED = 130
_KEPT = Path("build/ablation")
_OURS, _ARTICLE = "#c2410c", "#94a3b8"


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit status: 130 after Ctrl-C."""
    args = _parser().parse_args(arguments)
    programs = programs_of(args.images)
    names = args.programs or list(programs)
    how = Plan(args.device, args.budget, args.store, args.rounds, args.trials, _KEPT, args.resume)
    take = ablate if args.device == "cpu" else ablate_simulated
    found: list[Ablation] = []
    status = 0
    with Progress(console=Console(stderr=True)) as progress:
        steps = sum(len(programs[name].strategies) + 1 for name in names)
        task = progress.add_task("tuning", total=steps)
        try:
            for name in names:
                found.append(
                    take(
                        programs[name],
                        how,
                        lambda done: progress.update(task, advance=1, description=done),
                    )
                )
        except KeyboardInterrupt:
            status = _INTERRUPTED
    if args.output and found:
        _write(found, args.output, args.device, args.no_plots)
    print(_json(found) if args.json else markdown(found))
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("programs", nargs="*", choices=[[], *PROGRAMS], help="all by default")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds per strategy")
    parser.add_argument("--store", help="SQLAlchemy URL (default: GAF_STORE)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--images", type=int, default=IMAGES, help="of a batch of ResNet-50")
    parser.add_argument("--trials", type=int, help="new ones per strategy")
    parser.add_argument("--resume", action="store_true", help="go on where a run was cut")
    parser.add_argument("--output", type=Path, help="folder for the table and the plot")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-plots", action="store_true")
    return parser


def _json(found: Sequence[Ablation]) -> str:
    rows = [dataclasses.asdict(ablation) for ablation in found]
    return json.dumps({"machine": machine(), "programs": rows}, indent=1)


def _write(found: Sequence[Ablation], folder: Path, device: str, no_plots: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / ("ablation" if device == "cpu" else f"ablation-{device.replace(':', '-')}")
    stem.with_suffix(".json").write_text(_json(found) + "\n", encoding="utf-8")
    text = f"# Fusion by strategy, on {device}\n\n{markdown(found)}"
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    if not no_plots:
        save_figure(_plot(found), stem)


def markdown(found: Sequence[Ablation]) -> str:
    """One table per program."""
    return "\n".join(_table(ablation) for ablation in found)


def _table(found: Ablation) -> str:
    head = ["strategy", found.unit, "against none", "kernels", "fusion rate", "article",
            "article against none"]  # fmt: skip
    lines = [f"## {found.title}\n", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    none = found.rows[0]
    lines += ["| " + " | ".join(_cells(row, none, found)) + " |" for row in found.rows]
    if found.eager_us is not None:
        lines.append(f"\nThe framework itself, unfused: {found.eager_us / 1000:.2f} ms per call.")
    lines += [f"\n{row.strategy}: {row.missing or row.wrong}" for row in found.rows
              if row.missing or row.wrong]  # fmt: skip
    lines += [f"\n{row.strategy}: on the host, in no time: {_counted(row.on_host)}."
              for row in found.rows if row.on_host]  # fmt: skip
    return "\n".join(lines) + "\n"


def _counted(ops: Sequence[str]) -> str:
    """Each op once, with how often it occurs."""
    return ", ".join(f"{op} ({count})" for op, count in sorted(Counter(ops).items()))


def _cells(row: Row, none: Row, found: Ablation) -> list[str]:
    if row.figure is None:
        return [row.strategy, "missing", "–", "–", "–", f"{row.article:g}", "–"]
    faster = "–" if none.us is None or row.us is None else f"{none.us / row.us:.2f}×"
    rate = found.unit == "images/s"
    theirs = row.article / none.article if rate else none.article / row.article
    mark = " **wrong**" if row.wrong else ""
    return [
        row.strategy,
        f"{row.figure:.4g}{mark}",
        faster,
        str(row.kernels),
        f"{row.fusion_rate:.0%}",
        f"{row.article:g}",
        f"{theirs:.2f}×",
    ]


def _plot(found: Sequence[Ablation]) -> Any:
    """Ours and the article's, each against its own unfused figure: the devices differ."""
    with plot_style() as pyplot:
        figure, panels = pyplot.subplots(
            1, len(found), figsize=(5.2 * len(found), 3.6), squeeze=False, layout="constrained"
        )
        for panel, ablation in zip(panels.flat, found, strict=True):
            _panel(panel, ablation)
        figure.legend(
            *panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2,
            frameon=False,
        )  # fmt: skip
    return figure


def _panel(panel: Any, found: Ablation) -> None:
    none, width = found.rows[0], 0.38
    for place, row in enumerate(found.rows):
        first = place == 0
        rate = found.unit == "images/s"
        theirs = row.article / none.article if rate else none.article / row.article
        if row.us is not None and none.us is not None:
            label = f"ours, {found.device}" if first else None
            bar = panel.bar(place - width / 2, none.us / row.us, width, color=_OURS, label=label)
            panel.bar_label(bar, [f"{row.figure:.4g}"], fontsize=8)
        label = "seed article, NPU" if first else None
        bar = panel.bar(place + width / 2, theirs, width, color=_ARTICLE, label=label)
        panel.bar_label(bar, [f"{row.article:g}"], fontsize=8)
    panel.set_xticks(range(len(found.rows)), [row.strategy for row in found.rows])
    panel.set_title(f"{found.title}\n(labels: {found.unit})", fontsize=9)
    panel.set_ylabel("speed, no fusion = 1")
    panel.grid(axis="y", color="#e2e8f0", linewidth=0.6)


if __name__ == "__main__":
    sys.exit(main())
