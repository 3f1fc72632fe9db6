"""Tables of models, as in `docs/models.md`.

`python -m tests.models` builds and runs, for each model, the cover that shares most;
`python -m tests.models search` searches for plans on this machine instead, where what runs beside
it costs trials. Models that the record lacks are added to it; then its table is printed.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from tests.fixtures.compilers import patient_compiler
from tests.models.forced import ForcedSource
from tests.models.rows import DTYPES, Row, add, forced, read, searched
from tests.models.zoo import MODELS

_COLUMNS = (
    "model", "dtype", "nodes", "left to torch", "share a kernel", "rate", "alone", "error",
    "eager's error",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models")
    parser.add_argument("what", nargs="?", choices=("forced", "search"), default="forced")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of a search")
    parser.add_argument("--record", type=Path, help="a file of rows, to go on with")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        source = ForcedSource(patient_compiler(Path(folder)))
        record = args.record or Path(folder) / "rows.jsonl"
        known = {(row.model, row.dtype) for row in read(record)}
        for name, dtype in ((name, dtype) for name in MODELS for dtype in DTYPES):
            if (name, dtype) in known:
                continue
            by_search = args.what == "search"
            found = (
                searched(name, dtype, args.seconds) if by_search else forced(name, dtype, source)
            )
            add(record, found)
        print("\n".join(table(read(record))))


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, in the order of the models."""
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
        ", ".join(row.alone) or "none",
        f"{row.error:.1e}",
        f"{row.eager_error:.1e}",
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
