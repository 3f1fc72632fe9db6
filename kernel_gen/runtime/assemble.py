"""Assembly: a cover and its kernels become a plan with one built object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from kernel_gen.codegen.cpu.abi import ABI_VERSION
from kernel_gen.errors import InternalError
from kernel_gen.fusion.group import FusionPlan
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.ascend.cann import CannCompiler
from kernel_gen.runtime.ascend.simulated import SimulatorCompiler
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.driver_packing import packed_bytes
from kernel_gen.runtime.driver_source import plan_sources
from kernel_gen.runtime.flags import compile_flags
from kernel_gen.runtime.host import required_features
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.layout import mutated_inputs, plan_layout
from kernel_gen.runtime.plan import Artifact, Kernel, Layout, Plan, Provenance, SearchSummary
from kernel_gen.runtime.requires import libc_version

KernelCompiler = SimulatorCompiler | CannCompiler
"""Compilers of NPU kernels."""


def assemble(
    program: Graph,
    graph: Graph,
    key: PlanKey,
    cover: FusionPlan,
    kernels: Sequence[Kernel],
    target: Target,
    compiler: Compiler | KernelCompiler,
    summary: SearchSummary,
) -> Plan:
    """The plan that runs `kernels` and the framework groups of `cover` in order.

    `graph` is the program as submitted, `program` the rewritten one that the cover speaks of. A
    KernelCompiler builds one object per kernel, a Compiler one for all of them.
    Raises InternalError if cover, kernels and program do not fit, or the driver does not build.
    """
    _check_interface(program, graph)
    _check_symbols(kernels)
    layout = replace(plan_layout(program, cover, kernels), packed_bytes=packed_bytes(kernels))
    _check_packs(program, kernels, layout)
    return Plan(
        key=key,
        graph=graph,
        program=program,
        target=target,
        cover=cover,
        kernels=tuple(kernels),
        artifacts=_build(program, kernels, layout, target, compiler),
        provenance=_provenance(target, compiler),
        summary=summary,
        layout=layout,
    )


def _build(
    program: Graph,
    kernels: Sequence[Kernel],
    layout: Layout,
    target: Target,
    compiler: Compiler | KernelCompiler,
) -> tuple[Artifact, ...]:
    if not kernels:
        return ()
    if not isinstance(compiler, Compiler):
        unique = {kernel.source.digest: kernel.source for kernel in kernels}
        return tuple(_object(compiler.compile(source)) for source in unique.values())
    return (_object(compiler.compile(plan_sources(program, kernels, layout), target)),)


def _object(built: Artifact | Failure) -> Artifact:
    if isinstance(built, Failure):
        raise InternalError(f"the plan's object does not build: {built.message}")
    return built


def _provenance(target: Target, compiler: Compiler | KernelCompiler) -> Provenance:
    if isinstance(compiler, Compiler):
        flags = compile_flags(target, openmp=compiler.openmp)
    else:
        flags = compiler.flags
    return Provenance(
        compiler=compiler.version,
        flags=flags,
        generator=_generator_version(),
        abi=ABI_VERSION,
        torch=".".join(version("torch").split(".")[:2]),
        libc=libc_version() or "",
        requires=required_features(target),
    )


def _generator_version() -> str:
    try:
        return version("graph-autofusion")
    except PackageNotFoundError:  # run from a source tree
        return "source"


def _check_interface(program: Graph, graph: Graph) -> None:
    """A rewrite keeps inputs and outputs, their types, mutations and aliases."""

    def face(g: Graph) -> object:
        inputs = [(g.type_of(i.value), i.kind) for i in g.inputs]
        return inputs, [(g.type_of(o.value), o.mutates, o.alias_of) for o in g.outputs]

    if face(program) != face(graph):
        raise InternalError("the rewritten program has other inputs or outputs than the graph")


def _check_symbols(kernels: Sequence[Kernel]) -> None:
    """C names are global in the object: one name, one source."""
    seen: dict[str, str] = {}
    for kernel in kernels:
        source = kernel.source
        names = [source.entry, *(pack.symbol for pack in source.packs)]
        for name in (*names, *([source.team] if source.team else [])):
            if seen.setdefault(name, source.digest) != source.digest:
                raise InternalError(f"two kernels of different source are named {name}")


def _check_packs(program: Graph, kernels: Sequence[Kernel], layout: Layout) -> None:
    packable = set(layout.constants) - mutated_inputs(program)
    for number, kernel in enumerate(kernels):
        for pack in kernel.source.packs:
            value = kernel.operands[pack.operand]
            if value not in packable:
                raise InternalError(f"kernel {number} packs value {value}, which may change")
