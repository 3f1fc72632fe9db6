"""`capture`: a PyTorch model or function becomes a graph.

torch.export traces the model with composites whole. Where the program writes to tensors, or an
operator has no lowering but torch knows a decomposition, the exported program is made functional
with just those operators decomposed, and read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_gen.collector import collecting_seldom
from kernel_gen.errors import InvalidGraph, UnsupportedModel
from kernel_gen.frontend.captured import (
    Captured,
    ConstantResult,
    FreshResult,
    ResultLeaf,
)
from kernel_gen.frontend.exporting import (
    FunctionModule,
    NotExported,
    as_module,
    decompose,
    decompositions,
    export,
    literal_names,
    needs_functional_form,
    transforms_gradients,
    written_out,
)
from kernel_gen.frontend.folding import fold_constants
from kernel_gen.frontend.layouts import ResultLayout, result_layouts
from kernel_gen.frontend.outputs import read_outputs
from kernel_gen.frontend.reader import read, without_rule
from kernel_gen.frontend.reading import Reading
from kernel_gen.frontend.release import release
from kernel_gen.frontend.tidy import tidy, with_strides

_ONE_AT_A_TIME = threading.RLock()  # torch.export keeps its state in the process
_ROUNDS = 4  # decompositions may use operators that need decomposing themselves


def capture(
    model: Callable[..., Any],
    example_inputs: Any = (),
    dynamic_shapes: Any = None,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
) -> Captured:
    """The model as a graph with its bindings.

    `model` is an nn.Module or any function of tensors. `example_inputs` is the tuple (or list) of
    positional arguments, a single tensor, or a mapping of keyword arguments; arguments may be
    nested. `dynamic_shapes` is torch.export's. Raises UnsupportedModel with what to do. Threads
    take turns.
    """
    args, kwargs = split_inputs(example_inputs, example_kwargs)
    with _ONE_AT_A_TIME, collecting_seldom():
        return _capture(model, args, kwargs, dynamic_shapes)


def _capture(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> Captured:
    is_function = isinstance(model, FunctionModule) or not isinstance(model, torch.nn.Module)
    if is_function and not kwargs and dynamic_shapes is None:
        program = _exported_function(model, args)
    else:
        program = export(as_module(model), args, kwargs, dynamic_shapes)
    literals, layouts = literal_names(program.graph), result_layouts(program)
    specs = program.call_spec
    try:
        state = _read_fully(program, literals)
        return _finish(state, specs, layouts, args, kwargs)
    except InvalidGraph as error:
        raise UnsupportedModel(f"the model does not fit the graph's limits: {error}") from error
    except UnsupportedModel as error:
        if _gives_one_twice(args, kwargs):
            raise UnsupportedModel(
                f"one tensor is given for several arguments, one of which may be written: {error}"
            ) from error
        raise
    finally:
        release(program)


def _gives_one_twice(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    tensors = [id(leaf) for leaf in pytree.tree_leaves((args, kwargs)) if torch.is_tensor(leaf)]
    return len(set(tensors)) < len(tensors)


def _exported_function(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> torch.export.ExportedProgram:
    """torch.export wraps up gradients (`torch.func.grad`, `vjp`) or fails on them (`jacrev`, an
    attention's); traced as it runs, the function holds their operators."""
    try:
        program = export(as_module(function), args, {})
    except NotExported as refusal:
        try:
            return export(written_out(function, args), args, {})
        except UnsupportedModel:
            raise refusal from None
    return (
        export(written_out(function, args), args, {}) if transforms_gradients(program) else program
    )


def split_inputs(
    example_inputs: Any, example_kwargs: Mapping[str, Any] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments from what a caller gives as example inputs."""
    kwargs = dict(example_kwargs or {})
    if isinstance(example_inputs, Mapping):
        return (), {**example_inputs, **kwargs}
    if isinstance(example_inputs, list | tuple) and not hasattr(example_inputs, "_fields"):
        return tuple(example_inputs), kwargs
    return (example_inputs,), kwargs


def _read_fully(program: torch.export.ExportedProgram, literals: frozenset[str]) -> Reading:
    """Decomposes what has no rule, reads, and goes on while rules refuse what torch can split."""
    tried: set[Any] = set()
    table = decompositions(without_rule(program))
    for _ in range(_ROUNDS):
        if table or needs_functional_form(program):
            tried |= set(table)
            program = decompose(program, table)
        state = read(program, literals, final=False)
        wanted = {t for t, why in state.refused.items() if why.decompose and t not in tried}
        table = decompositions(wanted | (without_rule(program) - tried))
        if not table:
            break
    return read(program, literals, final=True) if state.is_partial else state


def _finish(
    state: Reading,
    specs: tuple[pytree.TreeSpec, pytree.TreeSpec],
    layouts: Sequence[ResultLayout | None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Captured:
    in_spec, out_spec = specs
    results, mutations = read_outputs(state, layouts)
    graph = tidy(fold_constants(with_strides(state.builder.build(), state.strides)))
    leaves = tuple(
        True if isinstance(leaf, torch.Tensor) else ConstantResult(leaf)
        for leaf in pytree.tree_leaves((args, kwargs))
    )
    return Captured(
        graph,
        tuple(state.bindings),
        in_spec,
        out_spec,
        leaves,
        results,
        mutations,
        is_plain=not kwargs and all(isinstance(arg, torch.Tensor) for arg in args),
        is_single=_is_single(out_spec, results),
    )


def _is_single(out_spec: pytree.TreeSpec, results: Sequence[ResultLeaf]) -> bool:
    return out_spec.is_leaf() and results == (FreshResult(0),)
