"""Compiles and runs matmul kernels, and compares them with the NumPy executor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kernel_gen.codegen.cpu.matmul import MatmulTemplate
from kernel_gen.errors import Refusal
from kernel_gen.executor.execute import execute
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import BufferRole, LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import LoadedKernel
from kernel_gen.schedule.schedule import Choice, Point, Schedule
from tests.codegen.matmul_nests import Array, operands

TEMPLATE = MatmulTemplate()
TYPES = [
    (DType.BF16, DType.F32),
    (DType.F16, DType.F32),
    (DType.F64, DType.F64),
    (DType.I32, DType.I32),
    (DType.I64, DType.I64),
]
"""Storage type of the operands, and the type that is computed in."""


@dataclass(frozen=True, slots=True)
class Check:
    """A point of a nest's space (None: the first seed) to run on each number of threads.

    `inputs` are the operands that are read; None draws them.
    """

    nest: LoopNest
    point: Point | None = None
    threads: tuple[int, ...] = (2,)
    inputs: list[Array] | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """A compiler and a target."""

    compiler: Compiler
    target: Target

    def build(self, nest: LoopNest, point: Point) -> LoadedKernel | Refusal:
        """The kernel of a point of the space; a compiler's complaint fails the test."""
        schedule = TEMPLATE.schedule(nest, self.target, point)
        return schedule if isinstance(schedule, Refusal) else self._load([(nest, schedule)])[0]

    def check(
        self,
        nest: LoopNest,
        point: Point | None = None,
        threads: int = 1,
        inputs: list[Array] | None = None,
    ) -> None:
        """Runs a point (the first seed by default) and compares with the reference.

        `inputs` are the operands that are read, random ones by default.
        """
        self.check_all([Check(nest, point, (threads,), inputs)])

    def check_all(self, checks: Iterable[Check]) -> None:
        """Builds the kernels of all checks as one object, which takes half of the time of an object
        for each, and runs them one by one."""
        known = list(checks)
        kernels = self._load([(check.nest, self._schedule(check)) for check in known])
        for check, kernel in zip(known, kernels, strict=True):
            try:
                _compare(kernel, check)
            except AssertionError as wrong:
                extents = {axis.name: axis.extent for axis in check.nest.axes}
                wrong.add_note(f"{extents}, {check.point or 'first seed'}, {check.threads} threads")
                raise

    def _schedule(self, check: Check) -> Schedule:
        point = check.point or self.seed(check.nest)
        schedule = TEMPLATE.schedule(check.nest, self.target, point)
        assert isinstance(schedule, Schedule), schedule
        return schedule

    def _load(self, wanted: Sequence[tuple[LoopNest, Schedule]]) -> list[LoadedKernel]:
        sources = [
            TEMPLATE.generate(nest, self.target, schedule, f"kernel{number}")
            for number, (nest, schedule) in enumerate(wanted)
        ]
        built = self.compiler.compile_texts([s.files[0] for s in sources], self.target)
        assert not isinstance(built, Failure), built.message
        path = self.compiler.path_of(built)
        pairs = zip(sources, wanted, strict=True)
        return [LoadedKernel(path, source, nest) for source, (nest, _) in pairs]

    def seed(self, nest: LoopNest, **changes: Choice) -> Point:
        """The template's first guess with some choices replaced."""
        return {**dict(TEMPLATE.space(nest, self.target).seeds[0]), **changes}


def _compare(kernel: LoadedKernel, check: Check) -> None:
    nest = check.nest
    inputs = operands(nest, seed=3) if check.inputs is None else check.inputs
    expected = execute(nest, inputs, precision="f64")
    for threads in check.threads:
        given = iter(inputs)
        arrays = [
            poisoned(nest, i) if b.role is BufferRole.OUTPUT else next(given)
            for i, b in enumerate(nest.buffers)
        ]
        assert kernel.run(arrays, threads) == 0
        outputs = [a for a, b in zip(arrays, nest.buffers, strict=True)
                   if b.role is BufferRole.OUTPUT]  # fmt: skip
        for got, want in zip(outputs, expected, strict=True):
            assert_close(got, want, depth=max(a.extent for a in nest.axes))


def poisoned(nest: LoopNest, buffer: int) -> Array:
    kind = nest.buffers[buffer].type
    shape = tuple(d for d in kind.shape if isinstance(d, int))
    value = float("nan") if kind.dtype.is_float else 99
    return np.full(shape, value, numpy_dtype(kind.dtype))


def assert_close(got: Array, want: Array, depth: object) -> None:
    """Within the rounding of sums of `depth` products and of the stored type."""
    assert isinstance(depth, int)
    if not np.issubdtype(want.dtype, np.floating) and want.dtype.kind in "iu":
        np.testing.assert_array_equal(got, want)
        return
    loose = {2: 2e-2, 4: 2e-6 * max(depth, 16) ** 0.5, 8: 1e-13 * max(depth, 16)}
    tolerance = loose[want.dtype.itemsize]
    wide_got, wide_want = got.astype(np.float64), want.astype(np.float64)
    scale = max(1.0, float(np.abs(wide_want).max(initial=0.0)))
    np.testing.assert_allclose(wide_got, wide_want, rtol=tolerance, atol=tolerance * scale)
