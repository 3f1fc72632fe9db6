"""Random graphs as one kernel each, against the reference, with all rules of the chip checked."""

from __future__ import annotations

from pathlib import Path

from tests.codegen.ascend.random_kernels import check, drawn

COUNT = 24  # `make soak` draws hundreds
_SEED = 20


def test_random_graphs(tmp_path: Path) -> None:
    cases = drawn(COUNT, _SEED)
    assert len(cases) == COUNT
    check(cases, tmp_path)
