"""The kernel's entry: phases in order, with the barriers and flags between them.

Vector phases that read each other's results through the workspace are kept apart by a barrier of
all vector cores; a product waits for the vector cores before it, and the vector phases after it for
the cube cores, by flags between cores.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.codegen.ascend.cube.text import PREPARED, READY, WRITTEN, CubePhase
from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan, PhaseVariants


def entry(plan: KernelPlan, symbol: str, names: Sequence[str]) -> list[str]:
    """The extern "C" function."""
    given = "".join(f"GM_ADDR {n}, " for n in names)
    lines = [
        f'extern "C" __global__ __aicore__ void {symbol}({given}GM_ADDR workspace, GM_ADDR tiling)',
        "{",
        f"    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_{_kind(plan)});",
        f"    {symbol}_detail::Kernel kernel;",
        f"    kernel.Init({', '.join(names)}, workspace, tiling);",
    ]
    if not plan.has_cube:
        lines += _vector(plan.sections, symbol, "    ", started=False)  # type: ignore[arg-type]
    elif not plan.has_vector:
        lines += [f"    kernel.Product{s.number}();" for s in plan.sections]
    else:
        lines += _mixed(plan, symbol)
    return [*lines, "}"]


def _kind(plan: KernelPlan) -> str:
    """Which cores run, and whether they may wait for each other: a kernel of one kind of core alone
    has no barrier of all its cores."""
    if plan.has_cube:
        return "MIX_AIC_1_2" if plan.has_vector else "AIC_ONLY"
    phases = [s for s in plan.sections if isinstance(s, PhaseVariants)]
    return "MIX_AIV_1_0" if any(s.synchronised for s in phases[:-1]) else "AIV_ONLY"


def _vector(
    phases: Sequence[PhaseVariants], symbol: str, indent: str, *, started: bool
) -> list[str]:
    """Vector phases one after another. `started`: some ran before."""
    lines: list[str] = []
    for position, phase in enumerate(phases):
        if position or started:
            lines.append("PipeBarrier<PIPE_ALL>();")
            if position and phases[position - 1].synchronised:
                lines.append("SyncAll();")
            lines.append("kernel.pipe.Reset();")
        n = phase.number
        if len(phase.variants) == 1:
            lines.append(f"kernel.Phase{n}Way0();")
            continue
        kind = f"reinterpret_cast<const __gm__ {symbol}_Tiling *>(tiling)"
        lines.append(f"switch ({kind}->key{n}) {{")
        for key in range(len(phase.variants)):
            lines.append(f"    case {key}: kernel.Phase{n}Way{key}(); break;")
        lines += ["    default: break;", "}"]
    qualified = [
        f"AscendC::{line}" if line.startswith(("PipeBarrier", "SyncAll")) else line
        for line in lines
    ]
    return [indent + line for line in qualified]


def _mixed(plan: KernelPlan, symbol: str) -> list[str]:
    """Vector phases, the product, vector phases; in chunks of rows where the plan allows it, so
    that vector cores prepare one while the cube cores multiply another."""
    at = next(i for i, s in enumerate(plan.sections) if isinstance(s, CubePhase))
    cube = plan.sections[at]
    assert isinstance(cube, CubePhase)
    before = [s for s in plan.sections[:at] if not isinstance(s, CubePhase)]
    after = [s for s in plan.sections[at + 1 :] if not isinstance(s, CubePhase)]
    lines: list[str] = []
    if before:
        done = [
            "AscendC::PipeBarrier<PIPE_ALL>();",
            f"AscendC::CrossCoreSetFlag<0, PIPE_MTE3>({WRITTEN});",
            f"AscendC::CrossCoreWaitFlag({WRITTEN});",
            f"AscendC::CrossCoreSetFlag<2, PIPE_MTE3>({PREPARED});",
        ]
        body = [*_vector(before, symbol, "", started=False), *done, "kernel.pipe.Reset();"]
        lines += ["    if ASCEND_IS_AIV {", *_chunks(plan, cube, symbol, body), "    }"]
    lines += ["    if ASCEND_IS_AIC {", f"        kernel.Product{cube.number}();", "    }"]
    if after:
        body = [
            f"AscendC::CrossCoreWaitFlag({READY});",
            *_vector(after, symbol, "", started=False),
            "AscendC::PipeBarrier<PIPE_ALL>();",
            *(["AscendC::SyncAll();"] if any(s.synchronised for s in after) else []),
            "kernel.pipe.Reset();",
        ]
        lines += ["    if ASCEND_IS_AIV {", *_chunks(plan, cube, symbol, body), "    }"]
    return lines


def _chunks(plan: KernelPlan, cube: CubePhase, symbol: str, body: list[str]) -> list[str]:
    """`body` for each chunk of rows, or once."""
    if not plan.in_chunks:
        return [" " * 8 + line for line in body]
    given = f"reinterpret_cast<const __gm__ {symbol}_Tiling *>(tiling)"
    rows = cube.m if cube.m.isdigit() else f"kernel.{cube.m}"
    lines = [
        f"const int64_t chunkM = {given}->chunkM{cube.number};",
        f"for (int64_t low = 0; low < {rows}; low += chunkM) {{",
        "    kernel.s9997 = low;",
        f"    kernel.s9998 = low + chunkM < {rows} ? chunkM : {rows} - low;",
        *("    " + line for line in body),
        "}",
    ]
    return [" " * 8 + line for line in lines]
