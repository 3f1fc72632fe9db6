"""The template "matmul": products of one left operand, prologue and epilogue included."""

from __future__ import annotations

from kernel_gen.codegen.cpu.matmul.analysed import analysed
from kernel_gen.codegen.cpu.matmul.generate import generate
from kernel_gen.codegen.cpu.matmul.operand import (
    fits_in_place,
    left_modes,
    refuse_joined,
    refuse_pairs,
    refuse_turned,
    right_modes,
)
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.row_epilogue import refuse_panel, refuse_rows
from kernel_gen.codegen.cpu.matmul.scratch import refuse_depth
from kernel_gen.codegen.cpu.matmul.space import matmul_space, tiling_of
from kernel_gen.codegen.cpu.matmul.tiling import NAME, from_schedule, to_schedule
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import Contract, LoopNest
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.ir.types import Sym
from kernel_gen.schedule.schedule import Point, Schedule, Space


class MatmulTemplate:
    """Packed matrix products for CPUs (see the package's docstring)."""

    @property
    def name(self) -> str:
        return NAME

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        if target.kind is not DeviceKind.CPU:
            return Refusal(
                "wrong-device", f"the matmul template generates no code for {target.kind}"
            )
        found = self._analyse(nest)
        return found if isinstance(found, Refusal) else None

    def space(self, nest: LoopNest, target: Target) -> Space:
        return matmul_space(self._problem(nest), target)

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        problem = self._problem(nest)
        tiling = tiling_of(problem, target, point)
        if tiling.left not in left_modes(problem) or tiling.right not in right_modes(problem):
            return Refusal("operand-layout", f"operands read {tiling.left} and {tiling.right}")
        if not fits_in_place(problem, tiling):
            return Refusal("tile-too-large", f"a tile of {tiling.mr}×{tiling.nr} read in place")
        refused = (
            refuse_pairs(problem, tiling)
            or refuse_joined(problem, tiling)
            or refuse_turned(problem, tiling)
            or refuse_depth(problem, tiling)
            or refuse_panel(problem, tiling)
        )
        return refused or to_schedule(tiling)

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        problem = self._problem(nest)
        lanes = target.vector_bytes // problem.product.dtype.bytes
        return generate(problem, from_schedule(schedule, lanes), symbol)

    def _problem(self, nest: LoopNest) -> Problem:
        found = self._analyse(nest)
        if isinstance(found, Refusal):
            raise InvalidGraph(f"matmul template: {found.sentence}")
        return found

    def _analyse(self, nest: LoopNest) -> Problem | Refusal:
        products = [s for s in nest.statements if isinstance(s, Contract)]
        if not products:
            return Refusal("no-product", "the nest holds no matrix product")
        if any(isinstance(axis.extent, Sym) for axis in nest.axes):
            return Refusal("symbolic-extent", "the matmul template needs static extents")
        if not all(product.axes for product in products):
            return Refusal("empty-sum", "the product sums over no axis")
        found = analysed(nest)
        return found if isinstance(found, Refusal) else refuse_rows(found) or found
