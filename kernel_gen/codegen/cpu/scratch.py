"""Scratch memory of a kernel: what threads share, and what each has of its own."""

from __future__ import annotations

from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.unit import Unit

_ALIGNMENT = 64


class Scratch:
    """Hands out byte offsets, 64-byte aligned; the same name gives the same place."""

    def __init__(self) -> None:
        self._private: dict[str, tuple[int, int]] = {}
        self._shared: dict[str, tuple[int, int]] = {}

    def private(self, name: str, nbytes: int) -> int:
        """Offset from `mine`, the calling thread's own scratch."""
        return _place(self._private, name, nbytes)

    def shared(self, name: str, nbytes: int) -> int:
        """Offset from `common`, which all threads see."""
        return _place(self._shared, name, nbytes)

    @property
    def private_bytes(self) -> int:
        return _total(self._private)

    @property
    def shared_bytes(self) -> int:
        return _total(self._shared)

    def declare(self, unit: Unit, root: Scope, *, always: bool) -> None:
        """Puts the base pointers at the head of the function, once all places are known.

        `always`: the kernel has barriers even if it needs no scratch.
        """
        if not self._private and not self._shared and not always:
            return
        barrier(unit)
        root.text[:0] = [
            "char *const common = (char *)args->scratch;",
            f"char *const privates = common + {self.shared_bytes};",
            f"const gaf_i64 private_bytes = {self.private_bytes};",
            "char *const mine = privates + tid * private_bytes;",
            "int turn = 0;",
            "(void)common; (void)mine; (void)turn;",
        ]


def barrier(unit: Unit) -> None:
    """Defines `GAF_BARRIER`, which all threads of the team reach before one goes on."""
    unit.helper("gaf_barrier", _BARRIER)


def _place(places: dict[str, tuple[int, int]], name: str, nbytes: int) -> int:
    if name not in places:
        size = -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        places[name] = (_total(places), size)
    return places[name][0]


def _total(places: dict[str, tuple[int, int]]) -> int:
    return sum(size for _, size in places.values())


# A kernel on one thread may itself run inside someone's parallel region: no barrier then.
_BARRIER = """\
#ifdef _OPENMP
#define GAF_BARRIER if (nt > 1) { _Pragma("omp barrier") }
#else
#define GAF_BARRIER
#endif"""
