"""The C++ of a plan's driver: `gaf_create`, `gaf_run`, `gaf_destroy` of the plan ABI.

The text includes no header and names only what this module numbers itself: `gaf_step_7` runs the
plan's eighth kernel, `gaf_segment_1` the steps of its second segment, `gaf_share_1` one thread's
part of those that a team runs; long plans have tables. Entry points are the kernels' own C names.
The object is immutable after `gaf_create`; all that a call changes is what it brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernel_gen.codegen.cpu.abi import ABI_VERSION, PLAN_ABI
from kernel_gen.codegen.cpu.frame import HIDDEN, OPENMP
from kernel_gen.codegen.cpu.scratch import barrier
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.source import KernelSource
from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.driver_functions import run_by_functions
from kernel_gen.runtime.driver_packing import PackedRegion, create_function, packed_regions
from kernel_gen.runtime.driver_step import IN_TEAM, Place, Step
from kernel_gen.runtime.driver_tables import run_by_tables
from kernel_gen.runtime.layout import kernel_writes
from kernel_gen.runtime.plan import Kernel, Layout
from kernel_gen.runtime.regions import Memory, Region, regions

DRIVER_ENTRY = "gaf_run"
DRIVER_FILE = "plan.cpp"
_LONG = 256  # kernels whose steps are functions: they take a compiler some seconds


def plan_sources(
    program: Graph, kernels: Sequence[Kernel], layout: Layout
) -> tuple[KernelSource, ...]:
    """All translation units of a plan's object: each kernel once, then the driver."""
    unique = {kernel.source.digest: kernel.source for kernel in kernels}
    return (*unique.values(), driver_source(program, kernels, layout))


def driver_source(program: Graph, kernels: Sequence[Kernel], layout: Layout) -> KernelSource:
    """The driver as one more translation unit of the plan's object. Deterministic."""
    packed = packed_regions(kernels)
    run = run_by_tables if len(kernels) > _LONG else run_by_functions
    places = _Places.of(layout, packed)
    steps = _steps(program, kernels, places)
    unit = Unit()
    unit.helper("GAF_PLAN_ABI", PLAN_ABI)
    unit.helper("gaf_omp", OPENMP)
    barrier(unit)
    for text in (
        _declarations(kernels),
        _PLAN_STRUCT.format(constants=max(len(layout.constants), 1)),
        IN_TEAM,
        *run(steps, _segments(kernels, layout, steps), layout.arena_bytes),
        _VERSION.format(version=ABI_VERSION),
        _arena_function(kernels, layout),
        *create_function(packed, places.constants),
        _DESTROY,
    ):
        unit.function(text)
    return KernelSource(DRIVER_ENTRY, ((DRIVER_FILE, unit.text()),))


def _declarations(kernels: Sequence[Kernel]) -> str:
    entries = dict.fromkeys(kernel.source.entry for kernel in kernels)
    teams = dict.fromkeys(kernel.source.team for kernel in kernels if kernel.source.team)
    packs = dict.fromkeys(pack.symbol for kernel in kernels for pack in kernel.source.packs)
    lines = [
        'extern "C" {',
        "int posix_memalign(void **, unsigned long, unsigned long);",
        "int madvise(void *, unsigned long, int);",
        *(f"int {entry}(const gaf_kernel_args *args);" for entry in entries),
        *(
            f"{HIDDEN} int {t}(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt);"
            for t in teams
        ),
        *(f"void {symbol}(const void *src, void *dst);" for symbol in packs),
        "}",
    ]
    return "\n".join(lines)


_PLAN_STRUCT = """
struct gaf_plan {{
  char *block; // packed constants
  const void *constants[{constants}];
}};
"""


@dataclass(frozen=True, slots=True)
class _Places:
    """Where values are: bytes of packings and of the arena, positions of constants."""

    packed: dict[tuple[int, str], int]
    arena: dict[int, int]
    constants: dict[int, int]

    @staticmethod
    def of(layout: Layout, regions: Iterable[PackedRegion]) -> _Places:
        return _Places(
            {(region.value, region.symbol): region.offset for region in regions},
            {slot.value: slot.offset for slot in layout.arena},
            {value: i for i, value in enumerate(layout.constants)},
        )


def _steps(program: Graph, kernels: Sequence[Kernel], places: _Places) -> dict[int, Step]:
    """The steps of the kernels that have something to do, by position."""
    return {
        number: Step(kernel.source.entry, kernel.source.team, _operands(kernel, places))
        for number, kernel in enumerate(kernels)
        if any(program.type_of(value).elems != 0 for value in kernel_writes(kernel))
    }


def _segments(
    kernels: Sequence[Kernel], layout: Layout, steps: Mapping[int, Step]
) -> list[tuple[Region, ...] | None]:
    """The regions of each segment; None for the framework's."""
    memory = Memory.of(layout)
    return [
        regions(kernels, [k for k in segment.kernels if k in steps], memory)
        if segment.kernels
        else None
        for segment in layout.segments
    ]


def _operands(kernel: Kernel, places: _Places) -> tuple[tuple[Place, int], ...]:
    packs = {pack.operand: pack.symbol for pack in kernel.source.packs}
    found: list[tuple[Place, int]] = []
    for position, value in enumerate(kernel.operands):
        if position in packs:
            found.append((Place.PACKED, places.packed[value, packs[position]]))
        elif value in places.constants:
            found.append((Place.CONSTANT, places.constants[value]))
        elif value in places.arena:
            found.append((Place.ARENA, places.arena[value]))
        else:
            found.append((Place.VALUE, value))
    return tuple(found)


_VERSION = """\
unsigned gaf_abi_version(void) {{ return {version}; }}
"""


def _arena_function(kernels: Sequence[Kernel], layout: Layout) -> str:
    needs = dict.fromkeys((k.source.shared_bytes, k.source.scratch_bytes) for k in kernels)
    lines = [
        f"  bytes = {shared}ull + {scratch}ull * threads;\n  if (bytes > most) most = bytes;"
        for shared, scratch in needs
        if shared or scratch
    ]
    body = "\n".join(
        [
            "  const gaf_u64 threads = n_threads < 1 ? 1 : (gaf_u64)n_threads;",
            "  gaf_u64 most = 0, bytes = 0;",
            "  (void)dims, (void)threads, (void)bytes;",
            *lines,
            f"  return {layout.arena_bytes}ull + most;",
        ]
    )
    return f"gaf_u64 gaf_arena_bytes(const gaf_i64 *dims, int n_threads) {{\n{body}\n}}\n"


_DESTROY = """\
void gaf_destroy(gaf_plan *plan) {
  if (plan) __builtin_free(plan->block);
  __builtin_free(plan);
}"""
