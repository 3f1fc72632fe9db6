"""The text of a kernel: header comment, device functions, a class with one method per phase."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from kernel_gen.codegen.ascend.cube.text import CubePhase, cube_method
from kernel_gen.codegen.ascend.device.basics import PRELUDE
from kernel_gen.codegen.ascend.device.library import FUNCTIONS, needed
from kernel_gen.codegen.ascend.kernel.entry_text import entry
from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan, buffer_names
from kernel_gen.codegen.ascend.kernel.phase_method import phase_method
from kernel_gen.codegen.ascend.moves.memory import STORED
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStatement, dim_text
from kernel_gen.ir.loopnest import BufferRole, Compute, Contract, IndexValue, Reduce

_PLAIN = re.compile(r"((?:[\[,*+/-]|return) ?)\((?:1\*)?(\w+)\)")
"""A single number or name in parentheses, as an operand or an argument: polynomials have them."""


def fused_ops(nest: FlatNest) -> str:
    """The ops of a nest in order, each once, for the header comment."""
    named = [name for s in nest.statements if (name := _op_name(s))]
    return ", ".join(dict.fromkeys(named)) or "copy"


def _op_name(statement: FlatStatement) -> str | None:
    """What a statement does; None for plain reads and numbers."""
    match statement:
        case Contract():
            return "matmul"
        case Compute() | Reduce():
            return statement.op if statement.op != "const" else None
        case FlatLoad() if statement.at.statements():
            return "gather"
        case FlatLoad() if statement.guards:
            return "guarded read"
        case IndexValue():
            return "position"
    return None


def header(nest: FlatNest, template: str, symbol: str) -> list[str]:
    """Comment: what is fused, over which axes, operands and results."""
    axes = ", ".join(f"{a.name} < {dim_text(a.extent)}" for a in nest.axes) or "none"
    lines = [
        *_wrapped(f"// {symbol} fuses: {fused_ops(nest)}."),
        *_wrapped(f"// Template {template}; axes: {axes}."),
    ]
    for name, buffer in zip(buffer_names(nest.buffers), nest.buffers, strict=True):
        shape = ", ".join(dim_text(d) for d in buffer.type.shape)
        role = "result" if buffer.role is BufferRole.OUTPUT else "operand"
        lines.append(f"//   {name}: {role}, {buffer.type.dtype} ({shape})")
    return lines


def _wrapped(comment: str) -> list[str]:
    """A comment on as many lines as it takes."""
    return textwrap.wrap(comment, 100, subsequent_indent="//     ", break_long_words=False)


def kernel_text(plan: KernelPlan, template: str, symbol: str) -> str:
    """The kernel file."""
    body: list[str] = []
    for section in plan.sections:
        if isinstance(section, CubePhase):
            body += [*cube_method(section), ""]
            continue
        for key in range(len(section.variants)):
            body += [*phase_method(section, key, plan), ""]
    text = _PLAIN.sub(r"\1\2", "\n".join(body).rstrip())
    names = buffer_names(plan.buffers)
    types = [STORED[b.type.dtype] for b in plan.buffers]
    lines = [
        *header(plan.nest, template, symbol),
        '#include "kernel_operator.h"',
        f'#include "{symbol}_tiling.h"',
        "",
        f"namespace {symbol}_detail {{",
        "using namespace AscendC;",
        "",
        PRELUDE,
        *(FUNCTIONS[name] + "\n" for name in needed(text)),
        "class Kernel {",
        "public:",
        *_init(plan, symbol, names, types),
        "",
        text,
        "",
        "    TPipe pipe;",
        *(f"    int64_t {s};" for s in plan.symbols),
        *(["    int64_t s9997, s9998;  // the chunk of rows at hand"] if plan.in_chunks else []),
        "",
        "private:",
        f"    const __gm__ {symbol}_Tiling *tiling;",
        *(f"    GlobalTensor<{t}> {n};" for n, t in zip(names, types, strict=True)),
        *(f"    GlobalTensor<{w.ctype}> {w.name};" for w in plan.work),
        "};",
        f"}}  // namespace {symbol}_detail",
        "",
        *entry(plan, symbol, names),
    ]
    return "\n".join(lines) + "\n"


def _init(plan: KernelPlan, symbol: str, names: Sequence[str], types: Sequence[str]) -> list[str]:
    given = "".join(f"GM_ADDR {n}At, " for n in names)
    unused = "" if plan.work else "[[maybe_unused]] "
    lines = [
        f"    __aicore__ inline void Init({given}{unused}GM_ADDR workspace, GM_ADDR tilingAt)",
        "    {",
        f"        tiling = reinterpret_cast<const __gm__ {symbol}_Tiling *>(tilingAt);",
        *(f"        {s} = tiling->{s};" for s in plan.symbols),
    ]
    for name, kind in zip(names, types, strict=True):
        at = f"reinterpret_cast<__gm__ {kind} *>({name}At)"
        lines.append(f"        {name}.SetGlobalBuffer({at});")
    for w in plan.work:
        start = w.offset.text() if w.offset.terms else "0"
        at = f"reinterpret_cast<__gm__ {w.ctype} *>(workspace + {start} / 512 * 512)"
        lines.append(f"        {w.name}.SetGlobalBuffer({at});")
    return [*lines, "    }"]
