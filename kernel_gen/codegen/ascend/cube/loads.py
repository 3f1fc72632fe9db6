"""An operand's way from L1 to L0A and L0B, as text.

Fractals hold 16 rows of 32 B. L0A wants them row by row (ZZ), L0B column by column (ZN): an
operand whose k is contiguous in memory comes that way from the copy, others are transposed on the
way to L0.
"""

from __future__ import annotations

LOAD_A = {
    # m blocks of k fractals each, `mFractals` apart
    (True, 2): """\
for (int32_t i = 0; i < UpTo(m, 16) / 16; i++) {
    LoadData(a2[i * kBlocks * fractal], a1[k0 * UpTo(m, 16) + i * fractal],
             LoadData2DParams(0, static_cast<uint8_t>(kBlocks),
                              static_cast<uint16_t>(UpTo(m, 16) / 16), 0, 0, false, 0));
}""",
    (False, 2): """\
for (int32_t i = 0; i < UpTo(m, 16) / 16; i++) {
    LoadData(a2[i * kBlocks * fractal], a1[i * UpTo(kLength, 16) * 16 + k0 * 16],
             LoadData2DParams(0, static_cast<uint8_t>(kBlocks), 1, 0, 0, true, 0));
}""",
}
LOAD_B = {
    (True, 2): """\
for (int32_t i = 0; i < kBlocks; i++) {
    LoadData(b2[i * nFractals * fractal], b1[k0 * UpTo(n, 16) + i * UpTo(n, 16) * c0 + n1 * c0],
             LoadData2DParams(0, static_cast<uint8_t>(nFractals), 1, 0, 0, false, 0));
}""",
    (False, 2): """\
for (int32_t i = 0; i < kBlocks; i++) {
    LoadData(b2[i * nFractals * fractal], b1[n1 * UpTo(kLength, 16) + (k0 / 16 + i) * fractal],
             LoadData2DParams(0, static_cast<uint8_t>(nFractals),
                              static_cast<uint16_t>(UpTo(kLength, 16) / 16), 0, 0, true, 0));
}""",
    # squares of two fractals, which lie side by side in slabs of 16 rows
    (False, 4): """\
for (int32_t i = 0; i < (kBlocks + 1) / 2; i++) {
    LoadDataWithTranspose(b2[2 * i * nFractals * fractal],
                          b1[(k0 + 16 * i) * UpTo(n, 16) + n1 * 16],
                          LoadData2dTransposeParams(0, static_cast<uint8_t>(nFractals), 1, 0,
                                                    static_cast<uint16_t>(nFractals - 1), 0));
}""",
}
LOAD_A[True, 4] = LOAD_A[True, 2]
LOAD_B[True, 4] = LOAD_B[True, 2]


def can_load(left: bool, k_contiguous: bool, size: int) -> bool:
    """Whether an operand of this layout and element size can be read."""
    return (k_contiguous, size) in (LOAD_A if left else LOAD_B)
