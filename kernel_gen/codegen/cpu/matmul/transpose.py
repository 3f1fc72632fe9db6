"""Transposition of square blocks of vectors in registers, for operands that lie the other way."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit


def transpose_function(unit: Unit, vector: str, lanes: int) -> str:
    """`void f(vector t[lanes])`: lane j of t[i] and lane i of t[j] change places.

    Butterflies of strides 1, 2, 4, …: after the stride h, blocks of 2h × 2h are transposed.
    """
    name = f"gaf_transpose_{vector}"
    lines = [f"static inline void {name}({vector} *t) {{"]
    lines += [f"  {vector} a{i} = t[{i}];" for i in range(lanes)]
    lines += [f"  {vector} x;"]
    stride = 1
    while stride < lanes:
        for i in range(lanes):
            if not i & stride:
                lines += _butterfly(i, i + stride, stride, lanes)
        stride *= 2
    lines += [f"  t[{i}] = a{i};" for i in range(lanes)]
    return unit.helper(name, "\n".join([*lines, "}"]))


def _butterfly(i: int, j: int, stride: int, lanes: int) -> list[str]:
    """Swap a_i's lanes with the bit `stride` set against a_j's lanes without it."""
    low = [lane if not lane & stride else lanes + lane - stride for lane in range(lanes)]
    high = [lane + stride if not lane & stride else lanes + lane for lane in range(lanes)]
    return [
        f"  x = __builtin_shufflevector(a{i}, a{j}, {', '.join(map(str, low))});",
        f"  a{j} = __builtin_shufflevector(a{i}, a{j}, {', '.join(map(str, high))});",
        f"  a{i} = x;",
    ]
