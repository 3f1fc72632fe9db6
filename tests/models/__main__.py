"""The tables of `docs/models.md`.

`python -m tests.models` prints what may share kernels, `python -m tests.models search` what does in
the plans that searches choose: those models are tuned that the record lacks, and the table of the
record is printed. What the machine does beside a search costs trials.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from kernel_gen.frontend import capture
from tests.models.forced import forced_cover
from tests.models.searched import DTYPES, Row, add, read, searched
from tests.models.zoo import MODELS, case

RECORD = Path(__file__).parents[2] / "docs" / "models.jsonl"
_COLUMNS = (
    "model", "dtype", "nodes", "left to torch", "share a kernel", "rate", "error", "eager's error",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models")
    parser.add_argument("what", nargs="?", choices=("possible", "search"), default="possible")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of a search")
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.what == "possible":
        _print_possible()
        return
    known = {(row.model, row.dtype) for row in read(args.record)}
    for name, dtype in ((name, dtype) for name in MODELS for dtype in DTYPES):
        if (name, dtype) not in known:
            add(args.record, searched(name, dtype, args.seconds))
    print("\n".join(table(read(args.record))))


def _print_possible() -> None:
    print("| model | fp32 | bf16 |\n|---|---|---|")
    for name in MODELS:
        shown = " | ".join(f"{100 * _possible(name, dtype):.1f} %" for dtype in DTYPES.values())
        print(f"| {name} | {shown} |", flush=True)


def _possible(name: str, dtype: torch.dtype) -> float:
    """The fusion rate of the cover that shares most."""
    made = case(name, dtype)
    with torch.no_grad():
        graph = capture(made.module, made.args, example_kwargs=made.kwargs).graph
    return forced_cover(graph).rate


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table of searched plans, in the order of the models."""
    order = [(name, dtype) for name in MODELS for dtype in DTYPES]
    found = sorted(rows, key=lambda row: order.index((row.model, row.dtype)))
    return [_line(_COLUMNS), "|" + "---|" * len(_COLUMNS), *(_line(_cells(row)) for row in found)]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.model,
        row.dtype,
        str(row.nodes),
        ", ".join(row.left) or "none",
        f"{row.fused} of {row.ops}",
        f"{100 * row.rate:.1f} %",
        f"{row.error:.0e}",
        f"{row.eager_error:.0e}",
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
