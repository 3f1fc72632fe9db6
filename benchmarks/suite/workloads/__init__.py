"""What is measured, in small files by kind. A workload is built anew, from a fixed seed, in each
process: a callable as a user would write it, and its positional tensors.

A case has the form of a cases file: the callable, its inputs, and the oracle: "eager" (same values
as eager torch) or "fp64" (closer to the float64 result than rtol 1e-5).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.suite.workloads import convs, losses, models, products, rows, small

Case = tuple[Callable[..., Any], tuple[Any, ...], str]

BUILDERS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    **rows.BUILDERS,
    **products.BUILDERS,
    **convs.BUILDERS,
    **losses.BUILDERS,
    **small.BUILDERS,
    **models.BUILDERS,
}

TRANSFORMERS_AND_CNNS = (
    "bert_base_2l",
    "gpt2_block",
    "llama2_7b_layer_decode",
    "vit_b_block",
    "resnet50",
)
"""Workloads that the fusion rate is quoted for."""


def load_case(name: str, cases: Path | None = None) -> Case:
    """The workload `name` with weights and inputs of a fixed seed; from the file `cases` if given.

    Raises KeyError for an unknown name.
    """
    if cases is not None:
        return load_cases(cases)[name]
    torch.manual_seed(0)
    model, inputs = BUILDERS[name]()
    if isinstance(model, nn.Module):
        model = model.eval().requires_grad_(False)
    return model, inputs, "eager"


def load_cases(path: Path) -> dict[str, Case]:
    """CASES of a Python file of the cases form."""
    spec = importlib.util.spec_from_file_location("cases_file", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases: dict[str, Case] = module.CASES
    return cases
