"""Plans made of small hand-written kernels: one kernel per elementwise node of a graph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.source import KernelSource, Pack
from kernel_gen.fusion.group import CONSTANT_CODE, FrameworkGroup, FusionGroup, FusionPlan
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind, Node
from kernel_gen.ir.index import axis_index
from kernel_gen.ir.loopnest import Axis, Buffer, BufferRole, Compute, Load, LoopNest, Store
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import Kernel, Plan, SearchSummary
from kernel_gen.schedule.schedule import Schedule

TARGET = Target(DeviceKind.CPU, "x86-f0m0", "x86-64")
SUMMARY = SearchSummary(2.0, 1.0, 1.5, True, 3, 0, 0.5, 1.0)
F32 = DType.F32
_EXPRESSIONS = {"add": "a[i] + b[i]", "mul": "a[i] * b[i]", "sub": "a[i] - b[i]", "neg": "-a[i]"}


def f32(*shape: int) -> TensorType:
    return TensorType(F32, shape)


def chain_graph() -> Graph:
    """(x + y) * w - x, where w is a parameter."""
    b = GraphBuilder()
    x, y = b.input(f32(4, 6)), b.input(f32(4, 6))
    w = b.input(f32(4, 6), InputKind.PARAMETER)
    b.output(b.op("sub", b.op("mul", b.op("add", x, y), w), x))
    return b.build()


def kernel_for(
    graph: Graph,
    node: int,
    constants: Collection[int] = (),
    packed: Collection[int] = (),
    scratch_bytes: int = 0,
) -> Kernel:
    """A kernel of one contiguous elementwise fp32 node; `packed` constants are packed (copied)."""
    item = graph.nodes[node]
    operands = (*item.inputs, *item.outputs)
    type_ = graph.type_of(item.output)
    roles = [BufferRole.CONSTANT if v in constants else BufferRole.INPUT for v in item.inputs]
    buffers = [Buffer(graph.type_of(v), role) for v, role in zip(item.inputs, roles, strict=True)]
    nest = _nest(item, type_, (*buffers, Buffer(type_, BufferRole.OUTPUT)))
    positions = [i for i, value in enumerate(item.inputs) if value in packed]
    source = _source(item, type_.elems, positions, scratch_bytes)
    group = FusionGroup((node,), item.inputs, item.outputs)
    return Kernel(group, operands, nest, Schedule("by hand"), source, (item.op,))


def _nest(node: Node, type_: TensorType, buffers: tuple[Buffer, ...]) -> LoopNest:
    axes = tuple(Axis(f"i{i}", extent) for i, extent in enumerate(type_.shape))
    index = tuple(axis_index(axis.name) for axis in axes)
    loads = tuple(Load(i, index, F32) for i in range(len(node.inputs)))
    compute = Compute(node.op, tuple(range(len(loads))), F32)
    store = Store(len(loads), index, len(loads))
    return LoopNest(axes, buffers, (*loads, compute), (store,))


def _source(node: Node, elems: int, packed: list[int], scratch_bytes: int) -> KernelSource:
    name = f"k_{node.op}_{elems}" + "".join(f"_p{position}" for position in packed)
    b = "const float *b = (const float *)args->operands[1];" if len(node.inputs) > 1 else ""
    pack = f"{name}_pack"
    unit = Unit()
    unit.function(f"""
extern "C" int {name}(const gaf_kernel_args *args) {{
  const float *a = (const float *)args->operands[0];
  {b}
  float *out = (float *)args->operands[{len(node.inputs)}];
  for (gaf_i64 i = 0; i < {elems}; ++i) out[i] = {_EXPRESSIONS[node.op]};
  char *scratch = (char *)args->scratch;
  for (gaf_i64 i = 0; i < {scratch_bytes}ll * args->n_threads; ++i) scratch[i] = 77;
  return 0;
}}
extern "C" void {pack}(const void *src, void *dst) {{
  for (gaf_i64 i = 0; i < {elems}; ++i) ((float *)dst)[i] = ((const float *)src)[i];
}}
""")
    packs = tuple(Pack(position, elems * 4, pack) for position in packed)
    return KernelSource(name, ((f"{name}.cpp", unit.text()),), packs, scratch_bytes)


def key_of(graph: Graph) -> PlanKey:
    return PlanKey(graph.digest[:32], "static", "0" * 16, TARGET.key)


def groups_of(
    graph: Graph,
    framework: Collection[int] = (),
    constant: Collection[int] = (),
    left_out: Collection[int] = (),
    packed: Collection[int] = (),
    scratch_bytes: int = 0,
) -> tuple[FusionPlan, list[Kernel]]:
    """A cover with one group per node: `framework` nodes run by torch, `constant` ones at bind."""
    groups: list[FusionGroup | FrameworkGroup] = []
    kernels: list[Kernel] = []
    for number, node in enumerate(graph.nodes):
        if number in left_out:
            continue
        if number in framework or number in constant:
            code = CONSTANT_CODE if number in constant else "no-template"
            groups.append(FrameworkGroup((number,), node.inputs, node.outputs, code, "By hand."))
            continue
        kernel = kernel_for(graph, number, packed, packed, scratch_bytes)
        kernels.append(kernel)
        groups.append(kernel.group)
    return FusionPlan(tuple(groups)), kernels


def plan_of(
    graph: Graph, compiler: Compiler, scratch_bytes: int = 0, **choices: Collection[int]
) -> Plan:
    """The plan of `groups_of`."""
    cover, kernels = groups_of(graph, scratch_bytes=scratch_bytes, **choices)
    return assemble(graph, graph, key_of(graph), cover, kernels, TARGET, compiler, SUMMARY)


def with_provenance(plan: Plan, **changes: object) -> Plan:
    """`plan` with another provenance."""
    return replace(plan, provenance=replace(plan.provenance, **changes))
