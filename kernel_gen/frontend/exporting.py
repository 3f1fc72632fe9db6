"""torch.export with composites kept whole, functionalised only where the program needs it."""

from __future__ import annotations

import functools
import inspect
import logging
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import fx, nn
from torch._decomp import get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.caches import register_caches
from kernel_gen.frontend.own_writes import ARGUMENTS, DecidesByValues, noticed_writes
from kernel_gen.frontend.script import ScriptMirror, unscripted
from kernel_gen.frontend.tensor_lists import call_for_each

# Decomposing these gives far more work than the operator itself: torch runs them whole.
_KEEP = re.compile(
    r"pool|upsample|interpolate|grid_sampl|lstm|gru|rnn|sort|topk|fft|scatter|index_put|index_add|"
    r"index_copy|linalg_(?!vector_norm|vecdot)|conv_|cdist|embedding_bag|unique|nonzero|ctc_loss|"
    r"im2col|col2im|unfold|scaled_dot_product|multi_head_attention|transformer_encoder"
)

_FAKE_TENSORS = logging.getLogger("torch._subclasses.fake_tensor")
_HIDDEN = ContextVar("_HIDDEN", default=False)  # whether this thread is inside of `_quiet`


class NotExported(UnsupportedModel):
    """torch.export refuses the model; the message holds its reason."""


class FunctionModule(nn.Module):
    """A plain function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        # Past nn.Module.__setattr__, which would make a module among the functions a child.
        self.__dict__["function"] = function
        if _has_signature(function):
            self.__dict__["forward"] = function  # torch.export reads the names of its arguments

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["function"](*args, **kwargs)


def _has_signature(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C
        return False
    return True


def as_module(model: Callable[..., Any]) -> nn.Module:
    """The model itself if it is a module, otherwise a module that calls it."""
    if isinstance(model, torch.jit.ScriptModule):
        return ScriptMirror(model)
    return model if isinstance(model, nn.Module) else FunctionModule(model)


@contextmanager
def _quiet() -> Iterator[None]:
    """torch.export warns about its own internals, and logs the trace of each error that it raises
    as well; none of it is about the user's model."""
    _FAKE_TENSORS.addFilter(_is_of_another_thread)
    hidden = _HIDDEN.set(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _HIDDEN.reset(hidden)
        if not _HIDDEN.get():
            _FAKE_TENSORS.removeFilter(_is_of_another_thread)


def _is_of_another_thread(record: logging.LogRecord) -> bool:
    return not _HIDDEN.get()


def export(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any = None,
) -> torch.export.ExportedProgram:
    """The module as an exported program; raises UnsupportedModel with torch's reason."""
    register_caches()
    args, kwargs = _apart_from(module, args, kwargs)
    if isinstance(module, ScriptMirror):
        module = unscripted(module, args, kwargs)
    try:
        with _quiet(), torch.no_grad(), noticed_writes(module) as written:
            exported = torch.export.export(
                module, args, kwargs or None, dynamic_shapes=dynamic_shapes, strict=False
            )
    except Exception as error:
        if isinstance(error, UnsupportedModel):
            raise
        reason = error.__cause__ if isinstance(error, DecidesByValues) else error
        raise NotExported(
            f"torch.export cannot capture {type(module).__name__}: "
            f"{type(reason).__name__}: {_first_lines(str(reason))}"
        ) from reason
    _refuse_writes(type(module).__name__, set(written))
    return exported


def _apart_from(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with the module's own tensors as tensors of their own: torch.export takes one
    that is both for the module's, whatever a later call brings."""
    own = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
    leaves, structure = pytree.tree_flatten((args, kwargs))
    if not any(id(leaf) in own for leaf in leaves):
        return args, kwargs
    separate: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_unflatten(
        [leaf.detach() if id(leaf) in own else leaf for leaf in leaves], structure
    )
    return separate


def _refuse_writes(name: str, written: set[str]) -> None:
    if ARGUMENTS in written:
        raise UnsupportedModel(
            f"{name} changes a list, dict or cache among its arguments when it runs, which a plan "
            "would not do: return what is new instead"
        )
    if written:
        raise UnsupportedModel(
            f"{name} changes its attributes when it runs, which a plan would not do: "
            f"{', '.join(sorted(written)[:5])}. Hold such state in buffers"
        )


def _first_lines(message: str, limit: int = 600) -> str:
    lines = [line.strip() for line in inspect.cleandoc(message).splitlines() if line.strip()]
    return " ".join(lines)[:limit]


def needs_functional_form(program: torch.export.ExportedProgram) -> bool:
    """Whether an operator writes to its arguments or wraps a subgraph (autocast, grad modes)."""
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    return any(_is_impure(node.target) or _writes_statistics(node) for node in calls)


def _writes_statistics(node: fx.Node) -> bool:
    """Whether a batch norm writes to its running statistics: its schema does not say so."""
    if node.target not in (
        torch.ops.aten.batch_norm.default,
        torch.ops.aten.native_batch_norm.default,
    ):
        return False
    running, training = node.args[3:5], node.args[5]
    return training is True and any(tensor is not None for tensor in running)


def _is_impure(target: Any) -> bool:
    if isinstance(target, torch._ops.HigherOrderOperator):
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return False
    # detach_ writes no data.
    return target._schema.is_mutable and target is not torch.ops.aten.detach_.default


def decompositions(targets: Collection[Any]) -> dict[Any, Callable[..., Any]]:
    """torch's decompositions of the given operators, where it has one worth taking."""
    wanted = [
        target
        for target in targets
        if isinstance(target, torch._ops.OpOverload)
        and not _KEEP.search(target._schema.name.split("::")[1])
        and torch.Tag.nondeterministic_seeded not in target.tags
    ]
    if not wanted:
        return {}
    # Operators outside of aten may be registered at any time; a table takes a tenth of a second.
    all_known = all(target.namespace == "aten" for target in wanted)
    table = _known_decompositions() if all_known else torch.export.default_decompositions()
    found: dict[Any, Callable[..., Any]] = {
        target: table[target] for target in wanted if target in table
    }
    for target in wanted:
        if (on_members := call_for_each(target)) is not None:
            found[target] = on_members
    # Batch statistics are reductions; the export table leaves these operators whole.
    found |= get_decompositions([target for target in wanted if _is_batch_norm(target)])
    return found


@functools.cache
def _known_decompositions() -> Mapping[Any, Callable[..., Any]]:
    """torch's table as it is at the first call."""
    table: Mapping[Any, Callable[..., Any]] = torch.export.default_decompositions()
    return table


def _is_batch_norm(target: torch._ops.OpOverload) -> bool:
    return "native_batch_norm" in str(target._schema.name)


def decompose(
    program: torch.export.ExportedProgram, table: dict[Any, Callable[..., Any]]
) -> torch.export.ExportedProgram:
    """The functional form with only the operators of `table` decomposed; its results are flat."""
    try:
        with _quiet(), torch.no_grad(), _flat_results(program):
            result: torch.export.ExportedProgram = program.run_decompositions(table)
            return result
    except Exception as error:
        raise UnsupportedModel(
            f"torch cannot make the program functional: {_first_lines(str(error))}"
        ) from error


@contextmanager
def _flat_results(program: torch.export.ExportedProgram) -> Iterator[None]:
    """Hides the structure of the results: torch builds it as it traces the program again, and
    loses the constants that classes make in it (caches of `transformers` begin as
    `torch.tensor([])`)."""
    signature = program.module_call_graph[0].signature
    assert signature is not None
    structure = signature.out_spec
    signature.out_spec = pytree.tree_structure((0,) * structure.num_leaves)
    try:
        yield
    finally:
        signature.out_spec = structure


def transforms_gradients(program: torch.export.ExportedProgram) -> bool:
    """Whether the program takes gradients itself (`torch.func.grad`, `vjp`), which its exported
    form only wraps up."""
    graphs = (m.graph for m in program.graph_module.modules() if isinstance(m, fx.GraphModule))
    return any(
        getattr(node.target, "__module__", None) == "torch._functorch.predispatch"
        for graph in graphs
        for node in graph.nodes
        if node.op == "call_function"
    )


def written_out(function: Callable[..., Any], args: tuple[Any, ...]) -> nn.Module:
    """The function with its gradients as operators of their own, at the shapes of `args`.

    Tensors that it holds become constants. Raises UnsupportedModel with torch's reason, as for a
    function that decides by values.
    """
    module = as_module(function)
    try:
        with _quiet(), torch.no_grad(), noticed_writes(module) as written:
            # Fake tensors have no values to decide by: `.numpy()` of real ones would be a constant.
            trace = make_fx(
                lambda *given: module(*given), tracing_mode="fake", _allow_non_fake_inputs=True
            )
            made = trace(*args)
    except Exception as error:
        raise UnsupportedModel(
            f"torch cannot write the gradients out: {_first_lines(str(error))}"
        ) from error
    _refuse_writes(type(module).__name__, set(written))
    return made


def literal_names(graph: fx.Graph) -> frozenset[str]:
    """Placeholders of tensors that the program itself writes down (`torch.tensor([1, 2])`)."""
    lifts = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)
    return frozenset(
        node.name
        for node in graph.nodes
        if node.op == "placeholder"
        and node.users
        and all(user.target in lifts for user in node.users)
    )
