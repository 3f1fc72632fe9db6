"""How many threads the decisions of a schedule keep busy, and what they keep in memory for that."""

from __future__ import annotations

import functools
import math

from kernel_gen.codegen.cpu.matmul.normalise import normalise
from kernel_gen.codegen.cpu.matmul.problem import Problem, analyse
from kernel_gen.codegen.cpu.matmul.scratch import sums_bytes
from kernel_gen.codegen.cpu.matmul.tiling import NAME, Tiling, from_schedule
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule

_ONE = (1, "one")


def threads_of(nest: LoopNest, schedule: Schedule | None, target: Target) -> float:
    """Threads at work on average: all cores, unless a decision says one, or a matrix product has
    fewer pieces to share out, or no multiple of the cores."""
    if schedule is None:
        return target.cores
    said = [*schedule.find("threads"), *schedule.find("parallel")]
    values = [value for d in said for key, value in d.args if key in ("threads", "value", "count")]
    if any(value in _ONE for value in values):
        return 1
    if schedule.template != NAME:
        return target.cores
    problem, tiling = _product(nest, schedule, target)
    units = max(tiling.units(problem), 1)
    return units / math.ceil(units / target.cores)


def partial_sums_bytes(nest: LoopNest, schedule: Schedule | None, target: Target) -> int:
    """Bytes of sums that wait to be added up; 0 but for products whose depth is split."""
    if schedule is None or schedule.template != NAME:
        return 0
    problem, tiling = _product(nest, schedule, target)
    return sums_bytes(problem, tiling) if tiling.splits_depth else 0


def _product(nest: LoopNest, schedule: Schedule, target: Target) -> tuple[Problem, Tiling]:
    problem = _problem(nest)
    return problem, from_schedule(schedule, target.vector_bytes // problem.product.dtype.bytes)


@functools.lru_cache(maxsize=64)
def _problem(nest: LoopNest) -> Problem:
    """The product of a nest: looking for it takes longer than a prediction does."""
    found = analyse(normalise(nest))
    if isinstance(found, Refusal):
        raise InvalidGraph(f"a matmul schedule for a nest without a product: {found.sentence}")
    return found
