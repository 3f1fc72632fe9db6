"""The table of `docs/models.md`: python -m tests.models"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from graph_autofusion.fusion_rate import shared_share
from kernel_gen.frontend import capture
from kernel_gen.runtime.build import Compiler
from tests.models.forced import forced_plan
from tests.models.zoo import MODELS, case


def main() -> None:
    compiler = Compiler.find(Path(tempfile.mkdtemp()))
    print("| model | ops captured | fp32 | bf16 |\n|---|---|---|---|")
    for name in MODELS:
        counts, rates = zip(*(_of(name, t, compiler) for t in _DTYPES), strict=True)
        print(f"| {name} | {counts[0]} | {rates[0]:.1%} | {rates[1]:.1%} |".replace("%", " %"))


_DTYPES = (torch.float32, torch.bfloat16)


def _of(name: str, dtype: torch.dtype, compiler: Compiler) -> tuple[int, float]:
    """Nodes of the captured graph, and its fusion rate."""
    made = case(name, dtype)
    with torch.no_grad():
        graph = capture(made.module, made.args, example_kwargs=made.kwargs).graph
    plan = forced_plan(graph, compiler)
    rate = shared_share(plan.program, plan.cover.groups, plan.layout.folded)
    return len(graph.nodes), rate


if __name__ == "__main__":
    main()
