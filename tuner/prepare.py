"""From a submitted graph to tasks: rules, rewrites, candidate groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_gen.codegen.template import Template
from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.candidates import candidates
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.records import JobRequest
from tuner.tasks import Tasks, make_tasks


@dataclass(frozen=True, slots=True)
class Prepared:
    """The tasks of a program and the rules that shaped it."""

    tasks: Tasks
    rules_fired: tuple[str, ...]


def prepare(
    graph: Graph,
    request: JobRequest,
    templates: Sequence[Template],
    target: Target,
    check_stop: Callable[[], None] = lambda: None,
) -> Prepared:
    """Apply the rules and enumerate. What `check_stop` raises ends it: a long program takes many
    seconds.

    Raises InvalidRules for rules that do not validate, InvalidInput for symbolic shapes: kernels
    are measured at sizes, so a dynamic program is submitted once per size.
    """
    if graph.symbols:
        names = ", ".join(symbol.name for symbol in graph.symbols)
        raise InvalidInput(f"the graph's sizes {names} are symbolic: capture it at fixed sizes")
    ruled = apply_rules(graph, load_rules(request.rules or None), target.kind)
    found = candidates(
        ruled.program,
        tuple(templates),
        target,
        ruled.constraints,
        request.numerics,
        check_stop=check_stop,
    )
    narrow = target.kind is not DeviceKind.CPU  # cube units take fp16 and bf16 operands
    tasks = make_tasks(ruled.program, found, request.numerics == "strict", narrow)
    return Prepared(tasks, ruled.fired)
