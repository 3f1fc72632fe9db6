"""The Ascend simulator: compiles Ascend C sources unmodified for the host and runs them.

Function is faithful per instruction, rules of the chip are checked with missing synchronisation
among them, and time is simulated from the chip's parameter file. See `README.md`.
"""

from kernel_gen.ascend.sim.build import BuildError, build, compile_warnings, runtime_library
from kernel_gen.ascend.sim.result import SimFailure, SimResult
from kernel_gen.ascend.sim.simulator import Simulator

__all__ = [
    "BuildError",
    "SimFailure",
    "SimResult",
    "Simulator",
    "build",
    "compile_warnings",
    "runtime_library",
]
