"""The steps of a long plan's driver as tables: a compiler takes milliseconds for each function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from kernel_gen.runtime.plan import Segment


class Place(IntEnum):
    """Where an operand is, by position or offset: among the values of the call, in its arena, in
    the plan's packed constants, among the constants as they were given."""

    VALUE, ARENA, PACKED, CONSTANT = range(4)


Step = tuple[str, Sequence[tuple[Place, int]]]
"""Entry point of a kernel and where its operands are."""


def run_by_tables(
    steps: Sequence[Step | None], segments: Sequence[Segment], arena_bytes: int
) -> str:
    """`gaf_run` and its tables. `steps` has one entry per kernel, None where nothing is to do."""
    rows: list[str] = []
    places: list[int] = []
    ranges: list[str] = []
    most = 1
    for segment in segments:
        first = len(rows)
        for step in (steps[kernel] for kernel in segment.kernels):
            if step is not None:
                entry, operands = step
                rows.append(f"{{{entry}, {len(places)}, {len(operands)}}}")
                places += (4 * at + place for place, at in operands)
                most = max(most, len(operands))
        ranges.append(f"{{{first}, {len(rows)}}}" if segment.kernels else "{1, 0}")
    return _TABLES.format(
        places=_lines(f"{place}ull" for place in places or [0]),
        steps=_lines(rows or ["{0, 0, 0}"]),
        ranges=_lines(ranges),
        segments=len(segments),
        most=most,
        arena_bytes=arena_bytes,
    )


def packing_table(packings: Sequence[tuple[str, int, int]]) -> str:
    """The table behind `PACK_ALL`: packing function, position of its constant, offset of its
    result."""
    rows = _lines(f"{{{symbol}, {constant}, {offset}ull}}" for symbol, constant, offset in packings)
    return _PACKINGS.format(rows=rows)


PACK_ALL = """\
  for (const gaf_packing &p : gaf_packings) p.pack(constants[p.constant], made->block + p.offset);
"""


def _lines(items: Iterable[str]) -> str:
    return ",\n".join(f"  {item}" for item in items)


_PACKINGS = """\
struct gaf_packing {{
  void (*pack)(const void *src, void *dst);
  unsigned constant;
  gaf_u64 offset;
}};
static const gaf_packing gaf_packings[] = {{
{rows}}};
"""

_TABLES = """\
// Where each operand is, by the last two bits, and its position or offset there.
static const gaf_u64 gaf_places[] = {{
{places}}};

struct gaf_step {{
  int (*entry)(const gaf_kernel_args *args);
  unsigned first, operands; // in gaf_places
}};
static const gaf_step gaf_steps[] = {{
{steps}}};

// First step and the one after the last; the framework's segments have none.
static const unsigned gaf_segments[][2] = {{
{ranges}}};

static void *gaf_operand(const gaf_plan *plan, const gaf_call *call, gaf_u64 place) {{
  const gaf_u64 at = place >> 2;
  switch (place & 3) {{
    case 0: return call->values[at];
    case 1: return (char *)call->arena + at;
    case 2: return plan->block + at;
    default: return (void *)plan->constants[at];
  }}
}}

int gaf_run(const gaf_plan *plan, const gaf_call *call) {{
  if (!plan || !call || call->size < sizeof(gaf_call) || call->n_threads < 1 ||
      call->segment >= {segments})
    return GAF_BAD_ARGUMENT;
  const unsigned *range = gaf_segments[call->segment];
  if (range[0] > range[1]) return GAF_BAD_ARGUMENT;
  for (const gaf_step *step = gaf_steps + range[0]; step < gaf_steps + range[1]; ++step) {{
    void *operands[{most}];
    for (unsigned i = 0; i < step->operands; ++i)
      operands[i] = gaf_operand(plan, call, gaf_places[step->first + i]);
    const gaf_kernel_args args = {{sizeof(gaf_kernel_args), operands,
        (char *)call->arena + {arena_bytes}ull, call->dims, call->n_threads, call->stream}};
    if (step->entry(&args)) return GAF_KERNEL_FAILED;
  }}
  return GAF_OK;
}}
"""
