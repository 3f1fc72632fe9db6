"""A step of a plan's driver: which function of a kernel is called, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Place(IntEnum):
    """Where an operand is, by position or offset: among the values of the call, in its arena, in
    the plan's packed constants, among the constants as they were given."""

    VALUE, ARENA, PACKED, CONSTANT = range(4)


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel's functions, `KernelSource.entry` and `.team`, and where its operands are."""

    entry: str
    team: str | None
    operands: tuple[tuple[Place, int], ...]


TEAM_SIGNATURE = "const gaf_plan *plan, const gaf_call *call, gaf_i64 tid, gaf_i64 nt"

# A team of one is none: the caller's own region, if there is one, is left alone.
IN_TEAM = f"""\
static int gaf_in_team(int (*share)({TEAM_SIGNATURE}),
    const gaf_plan *plan, const gaf_call *call) {{
#ifdef _OPENMP
  if (call->n_threads > 1) {{
    int status = 0;
#pragma omp parallel num_threads(call->n_threads) reduction(| : status)
    status |= share(plan, call, omp_get_thread_num(), omp_get_num_threads());
    return status;
  }}
#endif
  return share(plan, call, 0, 1);
}}"""
"""Calls `share` in each thread of a team of as many as the call has; all of them return before it
does. A kernel that fails goes on with a value that does no harm, and so do those after it: threads
that left would have the others wait at the next barrier."""
