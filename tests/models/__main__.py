"""The table of `docs/models.md`: python -m tests.models"""

from __future__ import annotations

import torch

from kernel_gen.frontend import capture
from tests.models.forced import forced_cover
from tests.models.zoo import MODELS, case

_DTYPES = (torch.float32, torch.bfloat16)


def main() -> None:
    print("| model | fp32 | bf16 |\n|---|---|---|")
    for name in MODELS:
        shown = " | ".join(f"{100 * _rate(name, dtype):.1f} %" for dtype in _DTYPES)
        print(f"| {name} | {shown} |", flush=True)


def _rate(name: str, dtype: torch.dtype) -> float:
    """The fusion rate of the captured model."""
    made = case(name, dtype)
    with torch.no_grad():
        graph = capture(made.module, made.args, example_kwargs=made.kwargs).graph
    return forced_cover(graph).rate


if __name__ == "__main__":
    main()
