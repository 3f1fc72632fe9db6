"""Matrix products with what comes before and after them, for CPUs.

    nest --normalise--> flat nest --analyse--> Problem --space, tiling--> Tiling --generate--> text

The kernel: `left` packs rows of A with the prologue applied, `right` packs column tiles of B (at
load, if B is constant), a register tile multiplies them, `after` applies the epilogue to the tile
and stores it; `driver` holds the loops over blocks and the split among threads.
"""

from kernel_gen.codegen.cpu.matmul.template import MatmulTemplate

__all__ = ["MatmulTemplate"]
