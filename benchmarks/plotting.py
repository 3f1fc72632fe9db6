"""One look for all plots of `docs/benchmarks`: SVG and PNG, the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def plot_style() -> Iterator[Any]:
    """Fixed backend, fonts and ids, so that equal figures give equal files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    fixed = {
        "svg.hashsalt": "graph-autofusion",
        "svg.fonttype": "path",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
    }
    with pyplot.rc_context(fixed):
        yield pyplot


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Writes `stem`.svg and `stem`.png."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    svg, png = stem.with_suffix(".svg"), stem.with_suffix(".png")
    with plot_style():
        figure.savefig(svg, metadata={"Date": None}, bbox_inches="tight")
        figure.savefig(png, dpi=110, metadata={"Software": None}, bbox_inches="tight")
    return [svg, png]
