"""`python -m benchmarks.suite [WORKLOAD…] [--cases FILE] [--json] [--output DIR] [--resume]`.

Progress goes to standard error. The record is written after each workload; Ctrl-C ends the run
with what was measured so far, and `--resume` goes on from it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.suite import zygote
from benchmarks.suite.harness import Interrupted, Settings, run_workload
from benchmarks.suite.peers import CONTENDERS, OURS
from benchmarks.suite.processes import MALLOC, Gone
from benchmarks.suite.records import Result, Timing, machine, results_from_json, to_json
from benchmarks.suite.report import markdown
from benchmarks.suite.targets import Target, targets
from benchmarks.suite.workloads import BUILDERS, load_cases

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit status: 130 after Ctrl-C."""
    args = _parser().parse_args(arguments)
    settings = _settings(args)
    names = _names(args)
    run = _run_header(args)
    results = _resumed(args, run)
    store = _Record(args.output, run, settings.contenders)
    interrupted = _measure(names, settings, results, store)
    ordered = [results[name] for name in names if name in results]
    checked = [] if args.cases else _targets(args, ordered, interrupted)
    store.write(ordered, checked)
    _plot(args, ordered, settings)
    if args.json:
        print(to_json(run, ordered, checked), end="")
    else:
        print(markdown(ordered, settings.contenders, run, checked))
    return _INTERRUPTED if interrupted else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite", description=__doc__)
    parser.add_argument("workloads", nargs="*", help="names; all if none are given")
    parser.add_argument("--cases", type=Path, help="a Python file with CASES")
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=15, help="at most so many rounds")
    parser.add_argument("--seconds", type=float, default=20.0, help="of rounds per workload")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--output", type=Path, help="folder for suite.md, suite.json and plots")
    parser.add_argument("--resume", action="store_true", help="go on from suite.json in --output")
    parser.add_argument("--no-plots", action="store_true")
    parser.add_argument("--no-overhead", action="store_true", help="leave out the call overhead")
    return parser


def _settings(args: argparse.Namespace) -> Settings:
    contenders = tuple(args.contenders.split(","))
    unknown = sorted(set(contenders) - set(CONTENDERS))
    if unknown:
        raise SystemExit(f"no contender {', '.join(unknown)}; there are {', '.join(CONTENDERS)}")
    return Settings(
        contenders,
        threads=args.threads,
        rounds=args.rounds,
        least_rounds=min(5, args.rounds),
        seconds=args.seconds,
        cases=args.cases,
    )


def _names(args: argparse.Namespace) -> list[str]:
    known = list(load_cases(args.cases) if args.cases else BUILDERS)
    unknown = sorted(set(args.workloads) - set(known))
    if unknown:
        raise SystemExit(f"no workload {', '.join(unknown)}; there are {', '.join(known)}")
    return args.workloads or known


def _run_header(args: argparse.Namespace) -> dict[str, Any]:
    """What has to be equal for results to stand in one table, and the date."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "threads": args.threads,
        "contenders": args.contenders,
        "cases": str(args.cases) if args.cases else None,
        "machine": machine(),
    }


def _resumed(args: argparse.Namespace, run: Mapping[str, Any]) -> dict[str, Result]:
    """Complete results of an earlier run of the same kind on the same machine."""
    path = args.output / "suite.json" if args.output else None
    if not args.resume or path is None or not path.exists():
        return {}
    try:
        before, results = results_from_json(path.read_text(encoding="utf-8"))
    except (KeyError, TypeError, ValueError) as error:
        raise SystemExit(f"--resume: {path} is not a record of the suite ({error})") from None
    differing = [key for key in run if key != "date" and before.get(key) != run[key]]
    if differing:
        raise SystemExit(f"--resume: {path} was taken with other {', '.join(differing)}")
    return {r.workload: r for r in results if r.complete}


class _Record:
    """The files of a run; without a folder nothing is written."""

    def __init__(
        self, folder: Path | None, run: Mapping[str, Any], contenders: Sequence[str]
    ) -> None:
        self._folder, self._run, self._contenders = folder, run, contenders

    def write(self, results: Sequence[Result], checked: Sequence[Target] = ()) -> None:
        if self._folder is None or not results:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        page = "# Results of the suite\n\n" + markdown(
            results, self._contenders, self._run, checked
        )
        _replace(self._folder / "suite.json", to_json(self._run, results, checked))
        _replace(self._folder / "suite.md", page)


def _replace(path: Path, text: str) -> None:
    """Writes the whole file or nothing."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _measure(
    names: Sequence[str], settings: Settings, results: dict[str, Result], store: _Record
) -> bool:
    """Runs what is not in `results` yet; whether Ctrl-C ended it."""
    todo = [name for name in names if name not in results]
    steps = 1 + len(settings.contenders) * len(MALLOC) + 1 + settings.rounds
    console = Console(stderr=True)
    with _progress(console) as progress:
        task = progress.add_task("", total=steps * len(todo))
        for number, name in enumerate(todo):
            label = f"{name} ({number + 1} of {len(todo)})"

            def tell(done: str, label: str = label) -> None:
                progress.update(task, advance=1, description=f"{label}: {done}")

            progress.update(task, description=label)
            try:
                results[name] = run_workload(name, settings, tell)
            except Interrupted as stop:
                if stop.result is not None:
                    results[name] = stop.result
                return True
            except Gone as error:
                results[name] = _failed(name, settings, str(error))
            progress.update(task, completed=steps * (number + 1))
            progress.console.print(_line(results[name]), highlight=False)
            store.write([results[n] for n in names if n in results])
    return False


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )


def _failed(name: str, settings: Settings, why: str) -> Result:
    return Result(name, tuple(Timing(c, missing=why) for c in settings.contenders))


def _line(result: Result) -> str:
    """One line for the terminal: ours, the best peer, the floor."""
    ours = result.of(OURS)
    best = result.fastest([t.contender for t in result.timings if t.contender != OURS])
    parts = [f"{ours.median_us / 1000:.3f} ms" if ours else "no time of ours"]
    parts += [f"best peer {best:.2f}×"] if best else []
    parts += [f"{result.floor_share:.0%} of the floor"] if result.floor_share else []
    bad = [f"{t.contender} {'wrong' if t.wrong else 'missing'}" for t in result.timings
           if not t.counts]  # fmt: skip
    return f"{result.workload}: {', '.join([*parts, *bad])}"


def _targets(args: argparse.Namespace, results: Sequence[Result], short: bool) -> list[Target]:
    overhead = None
    if not (args.no_overhead or short) and OURS in args.contenders.split(","):
        overhead = _overhead_us()
    search = args.output / "search.json" if args.output else None
    return targets(results, overhead, search)


def _overhead_us() -> float | None:
    """The figure of `benchmarks.overhead`, in a process of its own; None where that fails."""
    command = [sys.executable, "-m", "benchmarks.overhead", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=zygote.root())
    if done.returncode:
        print(f"benchmarks.overhead failed: {done.stderr[-500:]}", file=sys.stderr)
        return None
    return float(json.loads(done.stdout.splitlines()[-1])["overhead"])


def _plot(args: argparse.Namespace, results: Sequence[Result], settings: Settings) -> None:
    if args.no_plots or args.output is None or not results:
        return
    try:
        from benchmarks.suite.plots import plot_suite

        plot_suite(results, settings.contenders, args.output)
    except ModuleNotFoundError as error:
        print(f"no plots: {error.name} is not installed", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
