"""The text of a kernel: header comment, device functions, a class with one method per phase."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_gen.codegen.ascend.cube_text import CubePhase, cube_method
from kernel_gen.codegen.ascend.device.basics import PRELUDE
from kernel_gen.codegen.ascend.device.library import FUNCTIONS, needed
from kernel_gen.codegen.ascend.entry_text import entry
from kernel_gen.codegen.ascend.layout import Room
from kernel_gen.codegen.ascend.memory import STORED
from kernel_gen.codegen.ascend.phase import PhaseText
from kernel_gen.codegen.ascend.roles import extent_text
from kernel_gen.codegen.ascend.rooms import bytes_text
from kernel_gen.codegen.ascend.split_reduce import PART
from kernel_gen.codegen.cpu.linear import FlatLoad, FlatNest, FlatStatement, Poly, dim_text
from kernel_gen.ir.loopnest import Buffer, BufferRole, Compute, Contract, IndexValue, Reduce
from kernel_gen.ir.types import Sym

_PLAIN = re.compile(r"((?:[\[,*+/-]|return) ?)\((?:1\*)?(\w+)\)")
"""A single number or name in parentheses, as an operand or an argument: polynomials have them."""


@dataclass(frozen=True, slots=True)
class PhaseVariants:
    """A phase as text, whole or walked; the tiling function picks one by its key."""

    number: int
    variants: tuple[PhaseText, ...]
    synchronised: bool  # later phases read what this one leaves in the workspace
    nest: FlatNest
    align: int
    unit_lanes: int


@dataclass(frozen=True, slots=True)
class WorkTensor:
    """A tensor in the workspace, `offset` bytes from its start."""

    name: str
    ctype: str
    offset: Poly


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """A kernel before it is text. `nest` is for the header; `buffers` are the entry's arguments."""

    nest: FlatNest
    buffers: tuple[Buffer, ...]
    dims: tuple[str, ...]
    derived: Mapping[str, Poly]
    sections: tuple[PhaseVariants | CubePhase, ...]
    work: tuple[WorkTensor, ...]
    workspace: Poly
    in_chunks: bool = False  # vector phases run over chunks of the product's rows

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of all extents that the kernel is told."""
        return (*self.dims, *self.derived, *([self.parts] if self.parts else []))

    @property
    def parts(self) -> str | None:
        """The symbol of the number of parts of a split reduction, None where none is split."""
        nests = [s.nest for s in self.sections if isinstance(s, PhaseVariants)]
        split = any(PART in nest.axes for nest in nests)
        return PART.extent.name if split and isinstance(PART.extent, Sym) else None

    @property
    def has_cube(self) -> bool:
        return any(isinstance(s, CubePhase) for s in self.sections)

    @property
    def has_vector(self) -> bool:
        return any(isinstance(s, PhaseVariants) for s in self.sections)


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


def buffer_names(buffers: Sequence[Buffer]) -> list[str]:
    """x0, x1 … for operands and y0, y1 … for results."""
    names: list[str] = []
    counts = {"x": 0, "y": 0}
    for buffer in buffers:
        letter = "y" if buffer.role is BufferRole.OUTPUT else "x"
        names.append(f"{letter}{counts[letter]}")
        counts[letter] += 1
    return names


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
    mixed = plan.has_cube and plan.has_vector
    body: list[str] = []
    for section in plan.sections:
        if isinstance(section, CubePhase):
            body += [*cube_method(section), ""]
            continue
        for key, variant in enumerate(section.variants):
            body += [*_method(section, key, variant, plan, mixed=mixed), ""]
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


def _method(
    section: PhaseVariants, key: int, phase: PhaseText, plan: KernelPlan, *, mixed: bool
) -> list[str]:
    nest, number, unit_lanes = section.nest, section.number, section.unit_lanes
    roles, layout = phase.roles, phase.layout
    cores = "GetBlockNum() * GetTaskRatio()" if mixed else "GetBlockNum()"
    kind = "whole rows" if roles.whole else "walked in steps"
    what = (
        f"    // Tiles of {roles.row or 'one row'} x {roles.col}"
        f"{', ' + kind if roles.phase.inner else ''}; "
        f"each core takes a share of the tasks."
    )
    lines = [
        what,
        f"    __aicore__ inline void Phase{number}Way{key}()",
        "    {",
        f"        const int32_t tileHeight = static_cast<int32_t>(tiling->height{number});",
        f"        const int32_t tileWidth = static_cast<int32_t>(tiling->width{number});",
        f"        const int32_t pitch = UpTo(tileWidth, {section.align});",
        f"        const int32_t tileLanes = UpTo(tileHeight * pitch, {unit_lanes});",
        f"        const int32_t tileCols = UpTo(pitch, {unit_lanes});",
        f"        const int32_t tileRows = UpTo(tileHeight, {unit_lanes});",
        f"        const int32_t tileCross = UpTo(pitch * UpTo(tileHeight, 16), {unit_lanes});",
    ]
    tasks = []
    for axis in roles.outer:
        tasks.append(nest.extent_text(axis))
    if phase.splits_rows and roles.row:
        extent = nest.extent_text(roles.row)
        lines.append(f"        const int64_t rowTiles = ({extent} + tileHeight - 1) / tileHeight;")
        tasks.append("rowTiles")
    if phase.splits_cols:
        extent = extent_text(nest, roles.col)
        lines.append(f"        const int64_t colTiles = ({extent} + tileWidth - 1) / tileWidth;")
        tasks.append("colTiles")
    lines.append(f"        const int64_t tasks = {' * '.join(tasks) or '1'};")
    core = "GetBlockIdx()"
    if plan.in_chunks:
        # Another core has a task more in each chunk: its group would fall behind.
        turn = "s9997 / s9998 * GetTaskRatio()"
        lines.append(f"        const int64_t core = (GetBlockIdx() + {turn}) % ({cores});")
        core = "core"
    lines += [
        f"        const int64_t first = tasks * {core} / ({cores});",
        f"        const int64_t last = tasks * ({core} + 1) / ({cores});",
    ]
    for room in layout.rooms():
        lines += _room(room, unit_lanes)
    return [*_used(lines, "\n".join(layout.lines)), *layout.lines, "    }"]


def _used(lines: list[str], rest: str) -> list[str]:
    """The lines without declarations of sizes that nothing mentions."""
    while True:
        words = _words("\n".join([*lines, rest]))
        kept = [line for line in lines if not _unused_size(line, words)]
        if len(kept) == len(lines):
            return kept
        lines = kept


def _unused_size(line: str, words: list[str]) -> bool:
    parts = line.split()
    return parts[:2] == ["const", "int32_t"] and words.count(parts[2]) == 1


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _room(room: Room, unit_lanes: int) -> list[str]:
    size = bytes_text(room, unit_lanes)
    if room.name.startswith(("buffer", "indices")):
        return [
            f"        TBuf<TPosition::VECCALC> {room.name};",
            f"        pipe.InitBuffer({room.name}, static_cast<uint32_t>({size}));",
        ]
    place = "VECIN" if room.name.startswith("in") else "VECOUT"
    return [
        f"        TQue<TPosition::{place}, {room.depth}> {room.name};",
        f"        pipe.InitBuffer({room.name}, {room.depth}, static_cast<uint32_t>({size}));",
    ]
