"""`load`: run a bundle, with a model's weights or alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from graph_autofusion.arguments import checked_path
from graph_autofusion.guards import describe_call
from graph_autofusion.module import OptimizedModule
from graph_autofusion.options import OnMiss, Options
from graph_autofusion.report import FusionReport, report_of
from graph_autofusion.resolution import Accepts, Resolution
from kernel_gen.errors import InvalidInput
from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.runtime.bundle import read
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import TorchPlan
from kernel_gen.runtime.trust import Trust


class _OnePlan:
    """Answers with one plan for its own program, and with nothing for any other."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def resolve(self, graph: Graph, accepts: Accepts) -> Resolution:
        if graph.digest == self._plan.graph.digest:
            return Resolution(self._plan, "hit")
        reason = "the bundle holds a plan for another program or other shapes"
        return Resolution(None, "fallback", reason)

    def follow(self, job: str, graph: Graph, accepts: Accepts) -> Resolution | None:
        return self.resolve(graph, accepts)


class PlanModule:
    """A plan without a model: takes the program's tensors in order, gives its results.

    One result comes as a tensor, several as a tuple. Inputs must have the shapes, dtypes and
    strides of the capture; InvalidInput says which one does not.
    """

    def __init__(self, plan: Plan) -> None:
        held = [i.name or f"#{i.value}" for i in plan.graph.inputs if i.kind is not InputKind.USER]
        if held:
            raise InvalidInput(
                f"this bundle holds no weights and its program needs {len(held)} "
                f"({', '.join(held[:3])}, …): pass the model, gaf.load(bundle, model)"
            )
        self.plan = plan
        self._expected = [
            (to_torch(t.dtype), tuple(t.shape), t.element_strides)
            for t in (plan.graph.type_of(i.value) for i in plan.graph.inputs)
        ]
        self._bound = TorchPlan(plan).bind(())

    @property
    def report(self) -> FusionReport:
        return replace(report_of(self.plan, "hit"), reason="")  # there is no model to run instead

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        self._check(inputs)
        outputs = self._bound(inputs, torch.get_num_threads())
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _check(self, inputs: Sequence[torch.Tensor]) -> None:
        call = describe_call(tuple(inputs), {})
        if call.signature is None:
            raise InvalidInput(call.reason)
        if len(inputs) != len(self._expected):
            raise InvalidInput(f"{len(inputs)} inputs, the program takes {len(self._expected)}")
        for position, (tensor, wanted) in enumerate(zip(inputs, self._expected, strict=True)):
            got = (tensor.dtype, tuple(tensor.shape), tensor.stride())
            if got[:2] != wanted[:2] or (tensor.numel() > 1 and got[2] != wanted[2]):
                raise InvalidInput(f"input {position} is {got}, the program takes {wanted}")


def _require_weights(graph: Graph, model: torch.nn.Module) -> None:
    """Raises InvalidInput unless the model has a weight of each type that the program reads. Their
    names say nothing: models of one program share its plan, whatever they call their parts."""
    held = {(w.dtype, tuple(w.shape)) for w in (*model.parameters(), *model.buffers())}
    for source in graph.inputs:
        kind = graph.type_of(source.value)
        wanted = to_torch(kind.dtype), tuple(kind.shape)
        if source.kind in (InputKind.PARAMETER, InputKind.BUFFER) and wanted not in held:
            raise InvalidInput(
                f"this bundle is for another model: its program reads {source.name or 'a weight'}, "
                f"{wanted[0]} of shape {list(wanted[1])}, and {type(model).__name__} has no weight "
                "like that"
            )


def load(
    bundle_dir: str | Path, model: torch.nn.Module | None = None
) -> OptimizedModule | PlanModule:
    """The program of a bundle: `model` with the bundle's plan, or the plan alone.

    Raises UntrustedBundle unless the bundle is whole and signed by a trusted key, Unavailable where
    this machine lacks what the plan requires, InvalidInput where the model lacks weights that the
    program reads. With a model, calls that the plan does not fit run in the model, and a GafWarning
    says so.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise InvalidInput(f"model is {type(model).__name__}: expected the module to run")
    plan = read(checked_path("bundle_dir", bundle_dir), Trust.of_user())
    if model is None:
        return PlanModule(plan)
    _require_weights(plan.graph, model)
    return OptimizedModule(model, Options(on_miss=OnMiss.EAGER), source=_OnePlan(plan))
