"""Rates of a machine that cost models reckon with."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from kernel_gen.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Machine:
    """Rates that `Target` does not hold. Measured on Zen 5 with AVX-512 unless said otherwise;
    `cost_models.calibrate` measures some of them on the machine at hand."""

    clock_ghz: float = 3.8  # 245 GFLOP/s a core over 64 fp32 operations a cycle
    memory_gb_s: float = 41.0  # copy beyond the caches, read and written, all cores
    l3_gb_s: float = 140.0  # lower part of the 120-280 GB/s seen within L2 and L3
    l2_gb_s_core: float = 120.0  # per core, same measurement
    product_efficiency: float = 0.88  # packed micro-kernel: 221 of 245 GFLOP/s, less edges
    symbolic_extent: int = 128  # estimate: what a dimension is worth that is unknown
    plain_loop_efficiency: float = 0.04  # estimate: a product by plain loops, share of peak
    fork_us: float = 1.0  # waking the threads of a warm OpenMP team: 0.6 to 1 seen on Zen 4
    barrier_us: float = 0.3  # estimate: threads that wait for each other
    call_us: float = 0.2  # estimate: one call through the plan
    loop_efficiency: float = 0.8  # estimate: share of peak that generated pointwise code reaches

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            rate = getattr(self, field.name)
            if not 0 < rate < math.inf:
                raise InvalidInput(f"machine rate {field.name}={rate}: expected a positive number")
