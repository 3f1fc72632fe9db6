"""What code generation hands on: text, entry point, and what the caller must provide."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from kernel_gen.errors import InvalidGraph


@dataclass(frozen=True, slots=True)
class Pack:
    """A constant operand that is rearranged once when a plan is created.

    `operand` is the position of its buffer in `LoopNest.buffers`. The kernel then reads
    `nbytes` (64-byte aligned) that the C function `symbol(const void *src, void *dst)` has written.
    """

    operand: int
    nbytes: int
    symbol: str


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Source of one kernel. `files` is (name, text) pairs; the first one is compiled.

    The entry point is `int entry(const gaf_kernel_args *args)` of the kernel ABI
    (`kernel_gen/codegen/cpu/abi.py`). It needs `scratch_bytes` of 64-byte aligned scratch per
    thread (args->scratch holds `scratch_bytes * n_threads`) plus `shared_bytes` common to all
    threads, which come first. `in_place` are pairs (input, output) of operands that may be given
    the same memory, all of them or some.

    `team` is the same kernel for a team that runs already: each of its `nt` threads calls
    `int team(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt)`, and the work is done once all
    of them are back. None of a kernel that runs on one thread.
    """

    entry: str
    files: tuple[tuple[str, str], ...]
    packs: tuple[Pack, ...] = ()
    scratch_bytes: int = 0
    shared_bytes: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
    team: str | None = None

    def __post_init__(self) -> None:
        names = [self.entry, *([self.team] if self.team is not None else [])]
        if not self.files or not all(name.isidentifier() for name in names):
            raise InvalidGraph(f"kernel source {self.entry!r} with {len(self.files)} files")

    @property
    def digest(self) -> str:
        """SHA-256 over entry point, file names and texts, hexadecimal."""
        state = hashlib.sha256(self.entry.encode())
        for name, text in self.files:
            state.update(f"\0{name}\0{len(text)}\0{text}".encode())
        return state.hexdigest()
