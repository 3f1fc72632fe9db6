"""A timing loop in C: calls an entry point N times without Python in between."""

from __future__ import annotations

import ctypes
from pathlib import Path

from kernel_gen.errors import Unavailable
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import Call, LoadedKernel

_SOURCE = """\
struct gaf_timespec { long seconds, nanoseconds; };
extern "C" int clock_gettime(int, struct gaf_timespec *) noexcept;
static long long gaf_now_ns() {
  struct gaf_timespec t;
  clock_gettime(1, &t); /* CLOCK_MONOTONIC */
  return t.seconds * 1000000000LL + t.nanoseconds;
}
/* Calls `entry(args)` `count` times; returns nanoseconds, or -status of the first failing call. */
extern "C" long long gaf_time_ns(int (*entry)(const void *), const void *args, long long count) {
  const long long start = gaf_now_ns();
  for (long long i = 0; i < count; i++) {
    const int status = entry(args);
    if (status) return -(long long)status;
  }
  return gaf_now_ns() - start;
}
"""


class Timer:
    """The loaded timing loop."""

    def __init__(self, path: Path) -> None:
        self._function = ctypes.CDLL(str(path)).gaf_time_ns
        self._function.restype = ctypes.c_longlong
        self._function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong)

    @staticmethod
    def build(compiler: Compiler, target: Target) -> Timer:
        """Compiles the loop (once per object folder) and loads it; raises Unavailable."""
        return Timer(build_loop(compiler, target))

    def time_ns(self, kernel: LoadedKernel, call: Call, count: int) -> int:
        """Nanoseconds of `count` calls; negative: the negated status of a call that failed."""
        return int(self._function(kernel.entry_address, call.address, count))


def build_loop(compiler: Compiler, target: Target) -> Path:
    """Path of the compiled loop, which another process may load; raises Unavailable."""
    built = compiler.compile_texts([("timer.cpp", _SOURCE)], target)
    if isinstance(built, Failure):
        raise Unavailable(f"the timing loop does not compile: {built.message}")
    return compiler.path_of(built)
