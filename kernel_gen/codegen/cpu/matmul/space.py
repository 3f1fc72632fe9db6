"""What can be chosen for a matmul kernel, and first guesses from the target's capacities."""

from __future__ import annotations

from kernel_gen.codegen.cpu.matmul.operand import left_modes, right_modes
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split, Tiling
from kernel_gen.errors import Refusal
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Choice, Parameter, Point, Space

TILES = (
    "8x3",
    "14x2",
    "12x2",
    "6x4",
    "10x2",
    "4x6",
    "1x6",
    "1x4",
    "2x6",
    "3x4",
    "4x3",
    "6x2",
    "4x2",
    "8x1",
    "6x1",
    "4x1",
    "2x2",
    "1x1",
)


def matmul_space(problem: Problem, target: Target) -> Space:
    return Space(
        (
            Parameter("tile", TILES),
            Parameter("kc", (128, 192, 256, 384, 512, 768, 1024, 2048)),
            Parameter("mc", (4, 8, 16, 32, 64, 128)),
            Parameter("nc", (1, 2, 4, 8, 16, 32)),
            Parameter("left", tuple(str(m) for m in left_modes(problem))),
            Parameter("right", tuple(str(m) for m in right_modes(problem))),
            Parameter("split", tuple(str(s) for s in Split)),
            Parameter("unroll", (1, 2, 4)),
            Parameter("prefetch", (0, 4, 8, 16)),
        ),
        (
            (
                ("tile", "8x3"),
                ("kc", 512),
                ("mc", 64),
                ("nc", 4),
                ("left", str(left_modes(problem)[0])),
                ("right", str(right_modes(problem)[0])),
                ("split", "rows"),
                ("unroll", 2),
                ("prefetch", 8),
            ),
        ),
    )


def tiling_of(problem: Problem, target: Target, point: Point) -> Tiling | Refusal:
    rows, vectors = (int(part) for part in str(point["tile"]).split("x"))
    return Tiling(
        lanes=target.vector_bytes // problem.product.dtype.bytes,
        mr=rows,
        nv=vectors,
        kc=_count(point["kc"]),
        mc=_count(point["mc"]),
        nc=_count(point["nc"]),
        split=Split(str(point["split"])),
        left=Operand(str(point["left"])),
        right=Operand(str(point["right"])),
        unroll=_count(point["unroll"]),
        prefetch=_count(point["prefetch"]),
    )


def _count(choice: Choice) -> int:
    return int(choice)
