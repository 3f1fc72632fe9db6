"""The steps of a long plan's driver as tables: a compiler takes milliseconds for each function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernel_gen.runtime.driver_step import Step
from kernel_gen.runtime.regions import Region


def run_by_tables(
    steps: Mapping[int, Step], segments: Sequence[Sequence[Region] | None], arena_bytes: int
) -> list[str]:
    """`gaf_run` and its tables. `steps` are the kernels' by position; None is a segment of the
    framework's."""
    rows: list[str] = []
    places: list[int] = []
    ranges: list[str] = []
    for regions in segments:
        bounds = [len(rows)]  # of the kernels before the team's, the team's, and those after
        for region in regions or ():
            if region.team:
                bounds.append(len(rows))
            for turn in region.turns:
                step = steps[turn.kernel]
                team = step.team or "0"
                first, count = len(places), len(step.operands)
                rows.append(f"{{{step.entry}, {team}, {first}, {count}, {int(turn.waits)}}}")
                places += (4 * at + place for place, at in step.operands)
            if region.team:
                bounds.append(len(rows))
        bounds += [len(rows)] * (4 - len(bounds))
        ranges.append("{1, 0, 0, 0}" if regions is None else f"{{{', '.join(map(str, bounds))}}}")
    return [
        _TABLES.format(
            places=_lines(f"{place}ull" for place in places or [0]),
            steps=_lines(rows or ["{0, 0, 0, 0, 0}"]),
            ranges=_lines(ranges),
            segments=len(segments),
            most=max((len(step.operands) for step in steps.values()), default=1) or 1,
            arena_bytes=arena_bytes,
        )
    ]


def _lines(items: Iterable[str]) -> str:
    return ",\n".join(f"  {item}" for item in items)


_TABLES = """\
// Where each operand is, by the last two bits, and its position or offset there.
static const gaf_u64 gaf_places[] = {{
{places}}};

struct gaf_step {{
  int (*entry)(const gaf_kernel_args *args);
  int (*team)(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt); // null: for one thread
  unsigned first, operands; // in gaf_places
  unsigned waits; // the team's threads meet before it
}};
static const gaf_step gaf_steps[] = {{
{steps}}};

// First steps of those before the team's, of the team's, of those after, and the end; the
// framework's segments have none.
static const unsigned gaf_segments[][4] = {{
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

static int gaf_take(const gaf_step *step, const gaf_plan *plan, const gaf_call *call, gaf_i64 tid,
    gaf_i64 nt) {{
  if (tid && !step->team) return 0;
  void *operands[{most}];
  for (unsigned i = 0; i < step->operands; ++i)
    operands[i] = gaf_operand(plan, call, gaf_places[step->first + i]);
  const gaf_kernel_args args = {{sizeof(gaf_kernel_args), operands,
      (char *)call->arena + {arena_bytes}ull, call->dims, call->n_threads, call->stream}};
  return step->team ? step->team(&args, tid, nt) : step->entry(&args);
}}

static int gaf_share(const gaf_plan *plan, const gaf_call *call, gaf_i64 tid, gaf_i64 nt) {{
  const unsigned *range = gaf_segments[call->segment];
  int status = 0;
  for (const gaf_step *step = gaf_steps + range[1]; step < gaf_steps + range[2]; ++step) {{
    if (step->waits) {{ GAF_BARRIER }}
    status |= gaf_take(step, plan, call, tid, nt);
  }}
  return status;
}}

static int gaf_alone(const gaf_plan *plan, const gaf_call *call, unsigned first, unsigned end) {{
  int status = 0;
  for (unsigned i = first; i < end && !status; ++i)
    status = gaf_take(gaf_steps + i, plan, call, 0, 1);
  return status;
}}

int gaf_run(const gaf_plan *plan, const gaf_call *call) {{
  if (!plan || !call || call->size < sizeof(gaf_call) || call->n_threads < 1 ||
      call->segment >= {segments})
    return GAF_BAD_ARGUMENT;
  const unsigned *range = gaf_segments[call->segment];
  if (range[0] > range[3]) return GAF_BAD_ARGUMENT;
  const int failed = gaf_alone(plan, call, range[0], range[1]) ||
      (range[1] < range[2] && gaf_in_team(gaf_share, plan, call)) ||
      gaf_alone(plan, call, range[2], range[3]);
  return failed ? GAF_KERNEL_FAILED : GAF_OK;
}}
"""
