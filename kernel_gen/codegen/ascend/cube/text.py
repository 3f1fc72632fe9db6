"""The text of a matrix product on the cube cores.

    tiles of C, dealt out to the cores, those with the same columns one after another
        k in chunks:   GM -> L1 (row-major to fractals), in two to six buffers;
                       as many of the right one's chunks as L1 has room for stay there
            strips of columns, two at most:
                k in steps:    L1 -> L0A, L0B; Mmad into L0C
                after the last chunk: L0C -> GM by Fixpipe, converted, with ReLU where there is one

L0C holds two strips. The second one is a chunk of k behind the first, so that one strip has time to
leave L0C while the other, or the next tile's first, is multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.ascend.cube.bias import BiasRow, declared, fetched, multiplied, tabled
from kernel_gen.codegen.ascend.cube.loads import LOAD_A, LOAD_B
from kernel_gen.codegen.ascend.cube.tiling import Blocks
from kernel_gen.codegen.ascend.moves.addresses import Place
from kernel_gen.codegen.flat.linear import Poly


@dataclass(frozen=True, slots=True)
class MatrixOperand:
    """One matrix in global memory. `offset` is C++ text of its first element for the batch axes;
    `stride` of its rows. `k_contiguous`: rows run along k."""

    place: Place
    offset: str
    stride: Poly
    k_contiguous: bool


@dataclass(frozen=True, slots=True)
class CubePhase:
    """One batched product. Extents are C++ texts; `batch` are (axis, extent), outermost first."""

    number: int
    batch: tuple[tuple[str, str], ...]
    m: str
    n: str
    k: str
    lhs: MatrixOperand
    rhs: MatrixOperand
    out: MatrixOperand
    size: int  # bytes of an operand's element
    relu: bool
    waits: bool  # for the vector cores' prologue
    right_early: bool  # which does not make the right operand
    signals: bool  # to the vector cores' epilogue
    blocks: Blocks
    bias: BiasRow | None = None


MOST_KEPT = 8
"""Chunks of the right operand that stay in L1 while tiles share its columns: a queue's buffers."""

# Flags: vector cores among themselves, to their cube core, cube cores among themselves, and back to
# the vector cores.
WRITTEN, PREPARED, MULTIPLIED, READY = 3, 0, 1, 2


def cube_method(p: CubePhase) -> list[str]:
    """The method of the kernel class that computes a product."""
    n, c0 = p.number, 32 // p.size
    kind = p.lhs.place.ctype
    body = [
        f"// {'Batched product' if p.batch else 'Product'} of {p.lhs.place.name} and "
        f"{p.rhs.place.name}{f' from {p.bias.place.name}' if p.bias else ''}; each cube core takes "
        "a share of the tiles.",
        f"__aicore__ inline void Product{n}()",
        "{",
        f"    constexpr int32_t c0 = {c0}, fractal = 16 * c0;",
        f"    const int32_t tileM = static_cast<int32_t>(tiling->tileM{n});",
        f"    const int32_t tileN = static_cast<int32_t>(tiling->tileN{n});",
        f"    const int32_t strip = static_cast<int32_t>(tiling->strip{n});",
        f"    const int32_t tileK = static_cast<int32_t>(tiling->tileK{n});",
        f"    const int32_t chunkK = static_cast<int32_t>(tiling->chunkK{n});",
        f"    const int32_t stages = static_cast<int32_t>(tiling->stages{n});",
        "    TQue<TPosition::A1, 1> l1Queue;  // a chunk of each operand",
        f"    const int32_t kept = static_cast<int32_t>(tiling->kept{n});",
        "    TQue<TPosition::B1, 1> keptQueue;  // chunks of the right one",
        "    TBuf<TPosition::A2> a2Buffer;  // as many steps as b2Queue holds, in step with it",
        "    TQue<TPosition::B2, 3> b2Queue;",
        "    TQue<TPosition::CO1, 2> cQueue;",
        "    pipe.InitBuffer(l1Queue, static_cast<uint8_t>(stages),",
        f"                    static_cast<uint32_t>((tileM + tileN) * chunkK * {p.size}));",
        f"    pipe.InitBuffer(a2Buffer, static_cast<uint32_t>(3 * tileM * tileK * {p.size}));",
        f"    pipe.InitBuffer(b2Queue, 3, static_cast<uint32_t>(strip * tileK * {p.size}));",
        "    pipe.InitBuffer(cQueue, 2, static_cast<uint32_t>(tileM * strip * 4));",
        "    if (kept > 0) {",
        "        pipe.InitBuffer(keptQueue, static_cast<uint8_t>(kept),",
        f"                        static_cast<uint32_t>(tileN * chunkK * {p.size}));",
        "    }",
        "    int32_t step = 0;  // of k",
        f"    LocalTensor<{kind}> keptB[{MOST_KEPT}];",
        *_indented(declared(p.bias) if p.bias else [], 4),
        "    int64_t keptPanel = -1;  // whose chunks these are",
        f"    const int64_t chunkM = tiling->chunkM{n};",
        f"    const int64_t tilesN = ({p.n} + tileN - 1) / tileN;",
        f"    for (int64_t low = 0; low < {p.m}; low += chunkM) {{",
        *_indented(_rows(p, kind), 8),
        "    }",
        "}",
    ]
    return _indented(body, 4)


def _rows(p: CubePhase, kind: str) -> list[str]:
    """A chunk of rows of the result."""
    lines = [
        *(["bool prepared = false;"] if p.waits else []),
        f"const int64_t high = low + chunkM < {p.m} ? low + chunkM : {p.m};",
        "const int64_t tilesM = (high - low + tileM - 1) / tileM;",
        f"const int64_t tasks = {' * '.join(e for _, e in p.batch) or '1'} * tilesM * tilesN;",
        "const int64_t first = tasks * GetBlockIdx() / GetBlockNum();",
        "const int64_t last = tasks * (GetBlockIdx() + 1) / GetBlockNum();",
        "for (int64_t task = first; task < last; task++) {",
        *_indented(_task(p, kind), 4),
        "}",
    ]
    if p.waits:
        lines += ["if (!prepared) {", f"    AscendC::CrossCoreWaitFlag({PREPARED});", "}"]
    if p.signals:
        lines += [
            f"AscendC::CrossCoreSetFlag<0, PIPE_FIX>({MULTIPLIED});",
            f"AscendC::CrossCoreWaitFlag({MULTIPLIED});",
            f"AscendC::CrossCoreSetFlag<2, PIPE_FIX>({READY});",
        ]
    return lines


def _indented(lines: list[str], by: int) -> list[str]:
    return [" " * by + part for line in lines for part in line.splitlines()]


def _task(p: CubePhase, kind: str) -> list[str]:
    lines = [
        "int64_t left = task;",
        "const int64_t m0 = low + left % tilesM * tileM;",
        "left /= tilesM;",
        "const int64_t n0 = left % tilesN * tileN;",
    ]
    if p.batch:
        lines.append("left /= tilesN;")
    for axis, extent in reversed(p.batch):
        lines += [f"const int64_t {axis} = left % {extent};", f"left /= {extent};"]
    return [
        *lines,
        "const int32_t m = AtMost(tileM, high - m0);",
        f"const int32_t n = AtMost(tileN, {p.n} - n0);",
        "const int32_t rows = m > 1 ? m : 2;  // one alone is read as a vector, not as fractals",
        f"const int32_t chunks = static_cast<int32_t>(({p.k} + chunkK - 1) / chunkK);",
        *(fetched(p.bias) if p.bias else []),
        f"LocalTensor<{kind}> aChunks[2], bChunks[2];",
        "LocalTensor<float> c[2];",
        "for (int32_t i = 0; i <= chunks; i++) {",
        "    if (i < chunks) {",
        *_indented(_chunk(p, kind), 8),
        "    }",
        "    for (int32_t at = 0; at < 2 && at * strip < n; at++) {",
        "        const int32_t chunk = i - at, n1 = at * strip;",
        "        if (chunk < 0 || chunk == chunks) {",
        "            continue;",
        "        }",
        *_indented(_strip(p, kind), 8),
        "    }",
        "    if (i > 0) {",
        "        l1Queue.FreeTensor(aChunks[(i - 1) % 2]);",
        "    }",
        "}",
        "keptPanel = task / tilesM;",
    ]


def _chunk(p: CubePhase, kind: str) -> list[str]:
    a_at = _element(p.lhs, "m0", "k1")
    b_at = _element(p.rhs, "n0", "k1")
    a_shape = "m, kLength" if p.lhs.k_contiguous else "kLength, m"
    b_shape = "n, kLength" if p.rhs.k_contiguous else "kLength, n"
    slabs = not p.rhs.k_contiguous and p.size == 4
    copy_b = "CopySlabs" if slabs else "CopyFractals"
    wait = [
        "if (!prepared) {",
        f"    AscendC::CrossCoreWaitFlag({PREPARED});",
        "    prepared = true;",
        "}",
    ]
    wait = wait if p.waits else []
    return [
        "const int64_t k1 = static_cast<int64_t>(i) * chunkK;",
        f"const int32_t kLength = AtMost(chunkK, {p.k} - k1);",
        f"LocalTensor<{kind}> a1 = l1Queue.AllocTensor<{kind}>();",
        f"LocalTensor<{kind}> b1 = a1[tileM * chunkK];",
        *([] if p.right_early else wait),
        "if (i >= kept) {",
        f"    {copy_b}(b1, {b_at}, {b_shape}, {p.rhs.stride.text()});",
        "} else {",
        "    if (keptPanel != task / tilesM) {",
        "        if (keptPanel >= 0) {",
        "            keptQueue.FreeTensor(keptB[i]);",
        "        }",
        f"        keptB[i] = keptQueue.AllocTensor<{kind}>();",
        f"        {copy_b}(keptB[i], {b_at}, {b_shape}, {p.rhs.stride.text()});",
        "        keptQueue.EnQue(keptB[i]);",
        f"        keptB[i] = keptQueue.DeQue<{kind}>();",
        "    }",
        "    b1 = keptB[i];",
        "}",
        *(wait if p.right_early else []),
        f"CopyFractals(a1, {a_at}, {a_shape}, {p.lhs.stride.text()});",
        "l1Queue.EnQue(a1);",
        f"aChunks[i % 2] = l1Queue.DeQue<{kind}>();",
        "bChunks[i % 2] = b1;",
    ]


def _strip(p: CubePhase, kind: str) -> list[str]:
    """Some columns of a tile, over a chunk of k."""
    return [
        f"const LocalTensor<{kind}> a1 = aChunks[chunk % 2], b1 = bChunks[chunk % 2];",
        f"const int32_t kLength = AtMost(chunkK, {p.k} - static_cast<int64_t>(chunk) * chunkK);",
        "const int32_t width = AtMost(strip, n - n1);",
        "const int32_t nFractals = UpTo(width, 16) / 16;",
        "if (chunk == 0) {",
        "    c[at] = cQueue.AllocTensor<float>();",
        *_indented(tabled(p.bias) if p.bias else [], 4),
        "}",
        "for (int32_t k0 = 0; k0 < kLength; k0 += tileK) {",
        "    const int32_t k = AtMost(tileK, kLength - k0);",
        "    const int32_t kBlocks = UpTo(k, c0) / c0;",
        f"    LocalTensor<{kind}> b2 = b2Queue.AllocTensor<{kind}>();",
        f"    const LocalTensor<{kind}> a2 = a2Buffer.Get<{kind}>()[step % 3 * tileM * tileK];",
        "    step++;",
        *_indented([LOAD_A[p.lhs.k_contiguous, p.size]], 4),
        *_indented([LOAD_B[p.rhs.k_contiguous, p.size]], 4),
        "    b2Queue.EnQue(b2);",
        f"    b2 = b2Queue.DeQue<{kind}>();",
        *_indented(
            multiplied(_product("false")) if p.bias else _product("chunk == 0 && k0 == 0"), 4
        ),
        "    if (UpTo(m, 16) / 16 * nFractals < 10) {  // short products overtake each other",
        "        PipeBarrier<PIPE_M>();",
        "    }",
        "    b2Queue.FreeTensor(b2);",
        "}",
        "if (chunk == chunks - 1) {",
        *_indented(_result(p), 4),
        "}",
    ]


def _product(fresh: str) -> list[str]:
    """A step of k; `fresh`: whether the result starts from zero."""
    return [
        "Mmad(c[at], a2, b2,",
        "     MmadParams(static_cast<uint16_t>(rows), static_cast<uint16_t>(width),",
        f"                static_cast<uint16_t>(k), 0, false, {fresh}));",
    ]


def _element(operand: MatrixOperand, outer: str, k: str) -> str:
    """The first element of a block."""
    row, column = (outer, k) if operand.k_contiguous else (k, outer)
    return f"{operand.place.name}[{operand.offset} + {row} * {operand.stride.text()} + {column}]"


def _result(p: CubePhase) -> list[str]:
    quant = {"half": "F322F16", "bfloat16_t": "F322BF16"}.get(p.out.place.ctype)
    at = f"{p.out.offset} + m0 * {p.out.stride.text()} + n0 + n1"
    lines = [
        "cQueue.EnQue(c[at]);",
        "c[at] = cQueue.DeQue<float>();",
        "FixpipeParamsV220 shape;",
        "shape.nSize = static_cast<uint16_t>(width);",
        "shape.mSize = static_cast<uint16_t>(m);",
        "shape.srcStride = static_cast<uint16_t>(UpTo(m, 16));",
        f"shape.dstStride = static_cast<uint32_t>({p.out.stride.text()});",
    ]
    if p.relu:
        lines.append("shape.reluEn = true;")
    if quant:
        lines.append(f"shape.quantPre = QuantMode_t::{quant};")
    return [*lines, f"Fixpipe({p.out.place.name}[{at}], c[at], shape);",
            "cQueue.FreeTensor(c[at]);"]  # fmt: skip
