"""Large buffers are advised to use large pages; small ones and odd addresses are left in peace."""

from __future__ import annotations

import ctypes
import mmap
import re
from pathlib import Path

from kernel_gen.runtime.hugepages import LEAST_BYTES, advise


def test_a_large_buffer_is_advised() -> None:
    nbytes = 4 * LEAST_BYTES
    with mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        anchor = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(anchor)
        advise(address + 12345, nbytes - 12345)
        assert "hg" in _flags_at(address + nbytes // 2)
        del anchor


def test_a_small_buffer_is_not() -> None:
    with mmap.mmap(-1, LEAST_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        anchor = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(anchor)
        advise(address, LEAST_BYTES - 1)
        assert "hg" not in _flags_at(address + LEAST_BYTES // 2)
        del anchor


def _flags_at(address: int) -> list[str]:
    """What the system notes of the mapping that holds an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        span = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if span:
            inside = int(span[1], 16) <= address < int(span[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError("no mapping holds the address")
