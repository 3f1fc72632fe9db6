"""`python -m benchmarks.suite [WORKLOAD…] [--cases FILE] [--json] [--output DIR] [--resume]`.

Progress goes to standard error. The record is written after each workload; Ctrl-C ends the run
with what was measured so far, and `--resume` goes on from it.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.suite import zygote
from benchmarks.suite.harness import Interrupted, Settings, run_workload
from benchmarks.suite.harness import Progress as Tell
from benchmarks.suite.peers import CONTENDERS, OURS
from benchmarks.suite.processes import MALLOC, Gone, Zygotes
from benchmarks.suite.records import Result, Timing, machine, results_from_json, to_json
from benchmarks.suite.report import markdown
from benchmarks.suite.targets import Target, targets
from benchmarks.suite.workloads import BUILDERS, load_cases

_INTERRUPTED = 130
_LEAST_ROUNDS, _FEWEST_ROUNDS = 5, 3  # of a workload: usually, and where time is short
_FIRST_SET_UP_SECONDS = 40.0  # guessed until a workload is done


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit status: 130 after Ctrl-C."""
    args = _parser().parse_args(arguments)
    settings = _settings(args)
    known = list(load_cases(args.cases) if args.cases else BUILDERS)
    names = _names(args, known)
    run = _run_header(args)
    results = _resumed(args, run)
    store = _Record(args.output, run, settings.contenders, known)
    with _terminated_like_interrupted():
        interrupted = _measure(names, settings, results, store, _Clock(args.minutes * 60))
    ordered = store.ordered(results)
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
    parser.add_argument("--seconds", type=float, default=15.0, help="of rounds per workload")
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="for all; rounds are cut to fit, to three each"
    )
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
        least_rounds=min(_LEAST_ROUNDS, args.rounds),
        seconds=args.seconds,
        cases=args.cases,
    )


def _names(args: argparse.Namespace, known: list[str]) -> list[str]:
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
    """The files of a run, workloads in the order of `names`; without a folder nothing is written.
    What was resumed stays, also where the run at hand does not ask for it."""

    def __init__(
        self,
        folder: Path | None,
        run: Mapping[str, Any],
        contenders: Sequence[str],
        names: Sequence[str],
    ) -> None:
        self._folder, self._run, self._contenders = folder, run, contenders
        self._names = names

    def ordered(self, results: Mapping[str, Result]) -> list[Result]:
        return [results[name] for name in self._names if name in results]

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


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM keeps what there is, as Ctrl-C does."""
    kept = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, kept)


class _Clock:
    """Shares out the time that is left: what setting up takes is known from the workloads done."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._set_up = [_FIRST_SET_UP_SECONDS]

    def seconds_for_rounds(self, workloads_left: int) -> float:
        """What the next workload may spend on rounds, 0 where there is no time left."""
        left = self._end - time.monotonic()
        return max(0.0, left / workloads_left - statistics.mean(self._set_up))

    def count(self, seconds: float, of_rounds: float) -> None:
        """A workload took `seconds`, about `of_rounds` of them for its rounds."""
        self._set_up.append(max(0.0, seconds - of_rounds))


def _measure(
    names: Sequence[str],
    settings: Settings,
    results: dict[str, Result],
    store: _Record,
    clock: _Clock,
) -> bool:
    """Runs what is not in `results` yet; whether Ctrl-C ended it."""
    todo = [name for name in names if name not in results]
    if not todo:
        return False
    steps = 1 + len(settings.contenders) * len(MALLOC) + 1 + settings.rounds
    try:
        with _progress(Console(stderr=True)) as progress, Zygotes(settings.threads) as zygotes:
            task = progress.add_task("", total=steps * len(todo))
            for number, name in enumerate(todo):
                label = f"{name} ({number + 1} of {len(todo)})"

                def tell(done: str, label: str = label) -> None:
                    progress.update(task, advance=1, description=f"{label}: {done}")

                tell("reference")
                fitting = _fitted(settings, clock.seconds_for_rounds(len(todo) - number))
                began = time.monotonic()
                results[name] = _one(name, fitting, zygotes, tell)
                clock.count(time.monotonic() - began, fitting.seconds)
                progress.update(task, completed=steps * (number + 1))
                progress.console.print(_line(results[name]), highlight=False)
                store.write(store.ordered(results))
    except Interrupted as stop:
        if stop.result is not None:
            results[stop.result.workload] = stop.result
        return True
    except KeyboardInterrupt:
        return True
    return False


def _fitted(settings: Settings, seconds: float) -> Settings:
    """The settings with no more rounds than there is time for, but always a few."""
    if seconds >= settings.seconds:
        return settings
    return replace(settings, seconds=seconds, least_rounds=min(_FEWEST_ROUNDS, settings.rounds))


def _one(name: str, settings: Settings, zygotes: Zygotes, tell: Tell) -> Result:
    try:
        return run_workload(name, settings, zygotes, tell)
    except Gone as error:
        return Result(name, tuple(Timing(c, missing=str(error)) for c in settings.contenders))


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )


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
