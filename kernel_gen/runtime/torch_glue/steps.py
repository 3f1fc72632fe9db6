"""The steps of a bound plan: compiled segments with their buffers, and nodes that torch runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from kernel_gen.frontend.torch_calls.joint import JointCall
from kernel_gen.frontend.torch_fused import ConvolutionCall, library_call
from kernel_gen.frontend.torch_largest import largest_call
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.layout import kernel_reads, kernel_writes
from kernel_gen.runtime.plan import FrameworkGroup, Plan, Segment
from kernel_gen.runtime.torch_glue.pool import OutputPool


class Compiled:
    """A compiled segment: which buffers it fills, and which of its values are made in the memory
    of which inputs."""

    __slots__ = ("number", "overwrites", "takes")

    def __init__(
        self,
        number: int,
        takes: list[tuple[int, OutputPool]],
        overwrites: list[tuple[int, int]],
    ) -> None:
        self.number = number
        self.takes = takes
        self.overwrites = overwrites


class Framework:
    """Nodes for torch, or one `call` for all of them; `fetched` are their outputs that kernels
    read, with their types."""

    __slots__ = ("call", "fetched", "nodes")

    def __init__(
        self,
        nodes: tuple[int, ...],
        call: ConvolutionCall | JointCall | None,
        fetched: list[tuple[int, TensorType]],
    ) -> None:
        self.nodes = nodes
        self.call = call
        self.fetched = fetched


def output_pools(plan: Plan) -> dict[int, OutputPool]:
    """A pool per buffer value; values of one type share it, so that a call reuses its own."""
    overwriting = {value for value, _ in plan.layout.overwrites}
    own = [value for value in plan.layout.buffers if value not in overwriting]
    types = {value: plan.program.type_of(value) for value in own}
    uses = Counter(types.values())
    by_type = {type_: OutputPool(type_, per_call) for type_, per_call in uses.items()}
    return {value: by_type[type_] for value, type_ in types.items()}


def steps_of(
    plan: Plan,
    read: set[int],
    library: Container[tuple[int, ...]],
    pools: dict[int, OutputPool],
) -> list[Compiled | Framework]:
    """A step for each segment of the plan; `read` are values that kernels read, `library` the
    groups that are one call of the library."""
    return [
        _compiled(plan, number, segment, pools)
        if segment.framework is None
        else _framework(plan, segment.framework, read, library)
        for number, segment in enumerate(plan.layout.segments)
    ]


def _compiled(plan: Plan, number: int, segment: Segment, pools: dict[int, OutputPool]) -> Compiled:
    written = {v for k in segment.kernels for v in kernel_writes(plan.kernels[k])}
    takes = [(value, pools[value]) for value in sorted(written) if value in pools]
    overwrites = [pair for pair in plan.layout.overwrites if pair[0] in written]
    return Compiled(number, takes, overwrites)


def _framework(
    plan: Plan, position: int, read: set[int], library: Container[tuple[int, ...]]
) -> Framework:
    group = plan.cover.groups[position]
    fetched = [(v, plan.program.type_of(v)) for v in group.outputs if v in read]
    joint = largest_call(plan.program, group.nodes)
    call = library_call(plan.program, group.nodes) if group.nodes in library else joint
    return Framework(group.nodes, call, fetched)


def read_as_tensors(plan: Plan) -> set[int]:
    """Values that framework groups read, kernels write over or the program returns."""
    found = {output.value for output in plan.program.outputs}
    found.update(target for _, target in plan.layout.overwrites)
    for group in plan.cover.groups:
        if isinstance(group, FrameworkGroup):
            found.update(v for node in group.nodes for v in plan.program.nodes[node].inputs)
    return found


def dead_after(plan: Plan) -> list[list[int]]:
    """Per segment, the values that exist as tensors and are read by no later segment or output."""
    last: dict[int, int] = {}
    owned: set[int] = set(plan.layout.buffers)
    for number, segment in enumerate(plan.layout.segments):
        if segment.framework is None:
            kernels = [plan.kernels[k] for k in segment.kernels]
            touched = [v for k in kernels for v in (*kernel_reads(k), *kernel_writes(k))]
        else:
            group = plan.cover.groups[segment.framework]
            nodes = [plan.program.nodes[n] for n in group.nodes]
            touched = [*group.inputs, *(v for node in nodes for v in node.outputs)]
            owned.update(v for node in nodes for v in node.outputs)
        last.update((value, number) for value in touched)
    kept = {output.value for output in plan.program.outputs}
    dead: list[list[int]] = [[] for _ in plan.layout.segments]
    for value in sorted(owned - kept):
        dead[last[value]].append(value)
    return dead
