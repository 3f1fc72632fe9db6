"""`optimize`: the whole story for a PyTorch user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from graph_autofusion.arguments import checked_path
from graph_autofusion.capturing import as_module
from graph_autofusion.module import OptimizedModule
from graph_autofusion.options import parse_options
from kernel_gen.errors import InvalidInput
from kernel_gen.frontend.capture import split_inputs
from kernel_gen.frontend.files import read_model
from kernel_gen.records import Budget


def optimize(
    model: torch.nn.Module | Callable[..., Any] | str | Path,
    example_inputs: Any = None,
    *,
    device: str = "cpu",
    budget: Budget | float | None = None,
    service: str | None = None,
    store: str | None = None,
    on_miss: str | None = None,
    training: bool = False,
    dynamic_shapes: Any = None,
    rules: str | Path | Mapping[str, Any] | None = None,
    numerics: str = "fast",
    strict: bool = False,
) -> OptimizedModule:
    """A drop-in for `model` that runs the fastest plan known or found for it.

    `model` is a module, a function, or the path of an ONNX file, a torch.export archive or the JSON
    of a graph that holds all it needs.

    The program is captured at the first call, or now if `example_inputs` are given: a tensor, a
    tuple of positional arguments, or a mapping of keyword arguments. Further shapes are captured as
    they come.

    Args:
        device: where it runs; "cpu", or "ascend-sim:910b3" (910b1, 910b4; 310p and 950 are
            estimates) for a simulated NPU, whose times are simulated and whose runs are right, and
            slow.
        budget: `gaf.Budget(seconds=…, trials=…)` or seconds for the search; None is 60 s.
        service: URL of a tuning service (default GAF_SERVICE); None tunes on this machine.
        store: SQLAlchemy URL of the local tuner's database (default GAF_STORE, else SQLite in the
            user's cache folder; bundles lie beside it).
        on_miss: "tune", "queue", "eager" or "error"; default "queue" with a service, else "tune".
        training: plans for backward graphs; not available in this version.
        dynamic_shapes: accepted as torch.export takes it; each concrete shape gets its own plan.
        rules: a YAML file, its text, or a mapping of the same form; see docs/rules.md.
        numerics: "fast" keeps intermediates of a fused kernel in fp32, "strict" rounds as eager.
        strict: raise instead of falling back to the framework.

    Raises:
        InvalidInput: an argument is wrong, or the model does not take the example inputs (whatever
            `strict` is).
    """
    if isinstance(model, str | Path):
        model = read_model(checked_path("model", model)).module
    if isinstance(model, type):
        raise InvalidInput(f"{model.__name__} is a class: pass a model made of it")
    if not callable(model):
        raise InvalidInput(f"{type(model).__name__} is neither a module nor a function")
    options = parse_options(
        device=device,
        budget=budget,
        service=service,
        store=store,
        on_miss=on_miss,
        training=training,
        dynamic_shapes=dynamic_shapes,
        rules=rules,
        numerics=numerics,
        strict=strict,
    )
    optimized = OptimizedModule(as_module(model), options)
    if example_inputs is not None:
        args, kwargs = split_inputs(example_inputs)
        optimized.prepare(*args, **kwargs)
    return optimized
