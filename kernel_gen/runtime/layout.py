"""From a cover and its kernels to a layout: segments, who owns which value, and the arena.

A cover says what runs in which order; the layout says how. Runs of kernels between framework
groups become one segment. Every value that a kernel touches is one of

* a constant: an input that is no user input, a constant of the program, or the result of a node
  that depends on constants only (folded: computed once, when the constants are bound);
* a value of the caller's: a user input, a result, or something that torch reads or writes;
* an intermediate in the arena.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernel_gen.errors import InternalError
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup, FusionPlan
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.loopnest import BufferRole
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.runtime.aliases import computed_outputs
from kernel_gen.runtime.arena import Lifetime, place, storage_bytes
from kernel_gen.runtime.overwrites import Step, overwrites
from kernel_gen.runtime.plan import ArenaSlot, Kernel, Layout, Segment


def kernel_reads(kernel: Kernel) -> tuple[int, ...]:
    """Values that the kernel reads, in the order of its operands."""
    return _by_role(kernel, (BufferRole.INPUT, BufferRole.CONSTANT))


def kernel_writes(kernel: Kernel) -> tuple[int, ...]:
    """Values that the kernel writes, in the order of its operands."""
    return _by_role(kernel, (BufferRole.OUTPUT,))


def _by_role(kernel: Kernel, roles: tuple[BufferRole, ...]) -> tuple[int, ...]:
    pairs = zip(kernel.operands, kernel.nest.buffers, strict=True)
    return tuple(dict.fromkeys(value for value, buffer in pairs if buffer.role in roles))


def constant_inputs(program: Graph) -> tuple[int, ...]:
    """Values of the inputs that are bound once, in the order in which `bind` takes them."""
    return tuple(i.value for i in program.inputs if i.kind is not InputKind.USER)


def user_inputs(program: Graph) -> tuple[int, ...]:
    """Values of the inputs that change with each call, in order."""
    return tuple(i.value for i in program.inputs if i.kind is InputKind.USER)


def mutated_inputs(program: Graph) -> frozenset[int]:
    """Values of the inputs that a run writes; bound or not, they are read anew in each call."""
    return frozenset(
        program.inputs[o.mutates].value for o in program.outputs if o.mutates is not None
    )


def plan_layout(program: Graph, cover: FusionPlan, kernels: Sequence[Kernel]) -> Layout:
    """The layout of a plan; raises InternalError where cover and kernels do not fit the program."""
    results = computed_outputs(program)
    steps = _live(_steps(cover, kernels), results)
    folded = _folded(program, cover, steps, results)
    _check_order(program, steps, folded, results)
    buffers = _buffers(steps, results)
    slots, arena_bytes = _arena(program, steps, buffers)
    return Layout(
        segments=_segments(steps),
        constants=_constants(program, kernels, folded),
        folded=folded,
        buffers=buffers,
        overwrites=overwrites(program, cover, steps, kernels),
        arena=slots,
        arena_bytes=arena_bytes,
    )


def _steps(cover: FusionPlan, kernels: Sequence[Kernel]) -> tuple[Step, ...]:
    fused = [group for group in cover.groups if isinstance(group, FusionGroup)]
    if len(fused) != len(kernels):
        raise InternalError(f"cover has {len(fused)} fused groups, but {len(kernels)} kernels")
    steps: list[Step] = []
    number = 0
    for position, group in enumerate(cover.groups):
        if isinstance(group, FusionGroup):
            kernel = kernels[number]
            steps.append(Step(number, None, kernel_reads(kernel), kernel_writes(kernel)))
            number += 1
        elif not group.is_constant:
            steps.append(Step(None, position, group.inputs, group.outputs))
    return tuple(steps)


def _live(steps: Sequence[Step], results: Iterable[int]) -> tuple[Step, ...]:
    """Steps without those that nobody needs: a cover also makes results that are views of inputs,
    which the runtime takes from the input instead."""
    reads: dict[int, list[int]] = {}  # value -> what the steps that write it read
    for step in steps:
        for value in step.writes:
            reads.setdefault(value, []).extend(step.reads)
    needed: set[int] = set()
    pending = list(results)
    while pending:
        value = pending.pop()
        if value not in needed:
            needed.add(value)
            pending += reads.get(value, ())
    return tuple(step for step in steps if needed.intersection(step.writes))


def _segments(steps: Iterable[Step]) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    run: list[int] = []
    for step in steps:
        if step.kernel is not None:
            run.append(step.kernel)
            continue
        if run:
            segments.append(Segment(tuple(run)))
            run = []
        segments.append(Segment(framework=step.framework))
    return (*segments, Segment(tuple(run))) if run else tuple(segments)


def _given(program: Graph) -> set[int]:
    return {i.value for i in program.inputs} | {c.value for c in program.constants}


def _folded(
    program: Graph, cover: FusionPlan, steps: Sequence[Step], results: Iterable[int]
) -> tuple[int, ...]:
    """Nodes to run at bind time: constant groups, and what the cover leaves out but needs."""
    constant_groups = [g for g in cover.groups if isinstance(g, FrameworkGroup) and g.is_constant]
    declared = {node for group in constant_groups for node in group.nodes}
    made = _given(program) | {value for step in steps for value in step.writes}
    made |= {value for node in declared for value in program.nodes[node].outputs}
    wanted = [value for step in steps for value in step.reads]
    wanted += [*results, *(v for node in declared for v in program.nodes[node].inputs)]
    found = declared | _slice(program, [v for v in wanted if v not in made], _given(program))
    _check_constant(program, found)
    return tuple(sorted(found))


def _slice(program: Graph, values: Sequence[int], stop: set[int]) -> set[int]:
    """Nodes that `values` depend on, not looking past the values in `stop`."""
    producers = program.producers()
    found: set[int] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in stop:
            continue
        if value not in producers:
            raise InternalError(f"value {value} is neither an input nor produced by a node")
        node = producers[value]
        if node not in found:
            found.add(node)
            pending.extend(program.nodes[node].inputs)
    return found


def _check_constant(program: Graph, nodes: Iterable[int]) -> None:
    """Folded nodes may not depend on what changes between calls."""
    changing = set(user_inputs(program)) | mutated_inputs(program)
    for node in sorted(nodes):
        bad = [value for value in program.nodes[node].inputs if value in changing]
        if bad or spec(program.nodes[node].op).kind is OpKind.FRAMEWORK:
            raise InternalError(
                f"node {node} ({program.nodes[node].op}) is left out of the cover or marked "
                f"constant, but its result changes from call to call (inputs {bad})"
            )


def _check_order(
    program: Graph, steps: Iterable[Step], folded: Iterable[int], results: Iterable[int]
) -> None:
    ready = _given(program) | {v for node in folded for v in program.nodes[node].outputs}
    for position, step in enumerate(steps):
        missing = [value for value in step.reads if value not in ready]
        if missing:
            raise InternalError(f"step {position} reads values {missing} before they are produced")
        again = [value for value in step.writes if value in ready]
        if again:
            raise InternalError(f"step {position} writes values {again} a second time")
        ready.update(step.writes)
    lost = [value for value in results if value not in ready]
    if lost:
        raise InternalError(f"outputs {lost} are produced by no group")


def _buffers(steps: Sequence[Step], results: Iterable[int]) -> tuple[int, ...]:
    outside = set(results) | {v for s in steps if s.kernel is None for v in s.reads}
    written = (v for s in steps if s.kernel is not None for v in s.writes)
    return tuple(sorted(value for value in written if value in outside))


def _arena(
    program: Graph, steps: Sequence[Step], buffers: Sequence[int]
) -> tuple[tuple[ArenaSlot, ...], int]:
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    outside = frozenset(buffers)
    for position, step in enumerate(steps):
        if step.kernel is not None:
            first.update((v, position) for v in step.writes if v not in outside)
        last.update((v, position) for v in (*step.reads, *step.writes))
    return place(
        Lifetime(value, storage_bytes(program.type_of(value)), start, last[value])
        for value, start in first.items()
    )


def _constants(program: Graph, kernels: Sequence[Kernel], folded: Iterable[int]) -> tuple[int, ...]:
    fixed = set(constant_inputs(program)) | {c.value for c in program.constants}
    fixed |= {value for node in folded for value in program.nodes[node].outputs}
    return tuple(sorted({v for kernel in kernels for v in kernel_reads(kernel) if v in fixed}))
