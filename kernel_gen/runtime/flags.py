"""Compiler flags of a target: explicit instruction sets, never "native"."""

from __future__ import annotations

from kernel_gen.ir.target import Target

_COMMON = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fwrapv",  # integers wrap
    "-fno-strict-aliasing",  # scratch is reused by values of several types
    "-fno-math-errno",  # sqrt and rounding become instructions
    "-fno-trapping-math",  # selections may compute both sides
    "-ffp-contract=fast",  # a*b+c is one rounding; NaN, infinities and signed zeros stay exact
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=default",
    "-Wno-psabi",  # vectors wider than a register are passed between inlined functions only
    "-Wno-unknown-pragmas",
)


def isa_flags(target: Target) -> tuple[str, ...]:
    """Instruction-set flags: the level, then each extension by name."""
    if target.isa == "armv8-neon":
        return ("-march=armv8-a",)
    return (f"-march={target.isa}", *(f"-m{name}" for name in target.features))


def compile_flags(target: Target, *, openmp: bool) -> tuple[str, ...]:
    """All flags for one translation unit of kernels."""
    return (*_COMMON, *isa_flags(target), *(("-fopenmp",) if openmp else ()))


def link_flags(*, openmp: bool) -> tuple[str, ...]:
    """Flags for linking a shared object; it binds to the libgomp.so.1 that is loaded already."""
    return ("-shared", *(("-fopenmp",) if openmp else ()), "-Wl,--no-undefined", "-lm")
