"""Constants that kernels read packed: what is packed how, and `gaf_create`, which does it.

Threads take one packing after the other, as many as the process has for OpenMP: most of the time
goes into memory that is touched for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_gen.runtime.arena import align
from kernel_gen.runtime.hugepages import HUGE_PAGE_BYTES, LEAST_BYTES, MADV_HUGEPAGE
from kernel_gen.runtime.plan import Kernel


@dataclass(frozen=True, slots=True)
class PackedRegion:
    """Constant `value` as `symbol` packs it: `nbytes` at `offset` of the plan's own block."""

    value: int
    symbol: str
    nbytes: int
    offset: int


def packed_regions(kernels: Sequence[Kernel]) -> tuple[PackedRegion, ...]:
    """Each (constant, packing) pair once, however many kernels read it."""
    found: dict[tuple[int, str], PackedRegion] = {}
    offset = 0
    for kernel in kernels:
        for pack in kernel.source.packs:
            key = (kernel.operands[pack.operand], pack.symbol)
            if key not in found:
                found[key] = PackedRegion(*key, pack.nbytes, offset)
                offset += align(pack.nbytes)
    return tuple(found.values())


def packed_bytes(kernels: Sequence[Kernel]) -> int:
    """Size of the block that `gaf_create` allocates."""
    return sum(align(region.nbytes) for region in packed_regions(kernels))


def create_function(regions: Sequence[PackedRegion], position: Mapping[int, int]) -> list[str]:
    """`gaf_create` and what it calls; `position` is where each constant stands among the given."""
    nbytes = sum(align(region.nbytes) for region in regions)
    create = _CREATE.format(
        count=len(position),
        bytes=nbytes,
        alignment=HUGE_PAGE_BYTES if nbytes >= LEAST_BYTES else 64,
        least=LEAST_BYTES,
        advice=MADV_HUGEPAGE,
        pack="  gaf_pack(constants, made->block);\n" if regions else "",
    )
    return [_packing(regions, position), create] if regions else [create]


def _packing(regions: Sequence[PackedRegion], position: Mapping[int, int]) -> str:
    """Large ones come first: the threads end together."""
    ordered = sorted(regions, key=lambda region: -region.nbytes)
    rows = ",\n".join(f"  {{{r.symbol}, {position[r.value]}, {r.offset}ull}}" for r in ordered)
    return _PACK.format(rows=rows, count=len(ordered))


_PACK = """\
struct gaf_packing {{
  void (*pack)(const void *src, void *dst);
  unsigned constant;
  gaf_u64 offset;
}};
static const gaf_packing gaf_packings[] = {{
{rows}}};

static void gaf_pack(const void *const *constants, char *block) {{
  unsigned taken = 0;
#pragma omp parallel
  for (;;) {{
    const unsigned i = __atomic_fetch_add(&taken, 1u, __ATOMIC_RELAXED);
    if (i >= {count}u) break;
    const gaf_packing &p = gaf_packings[i];
    p.pack(constants[p.constant], block + p.offset);
  }}
}}
"""

_CREATE = """\
int gaf_create(const void *const *constants, gaf_u64 n, gaf_plan **plan) {{
  if (!plan || n != {count} || (n && !constants)) return GAF_BAD_ARGUMENT;
  *plan = 0;
  gaf_plan *made = (gaf_plan *)__builtin_malloc(sizeof(gaf_plan));
  if (!made) return GAF_NO_MEMORY;
  void *block = 0;
  if ({bytes}ull && posix_memalign(&block, {alignment}ull, {bytes}ull)) {{
    __builtin_free(made);
    return GAF_NO_MEMORY;
  }}
  if ({bytes}ull >= {least}ull) madvise(block, {bytes}ull, {advice});
  made->block = (char *)block;
  for (gaf_u64 i = 0; i < n; ++i) made->constants[i] = constants[i];
{pack}  *plan = made;
  return GAF_OK;
}}
"""
