"""Running a built kernel on a simulated chip."""

from __future__ import annotations

import _ctypes
import ctypes
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gen.ascend.chips import Chip
from kernel_gen.ascend.sim.result import SimResult, to_result
from kernel_gen.errors import InternalError, InvalidInput

_ALIGNMENT = 512  # of every argument in GM, as a device allocator gives it
_MEMORIES = ("ub", "l1", "l0a", "l0b", "l0c", "bt", "fb")
_CHECK, _TIMING, _TRACE, _ORDER = 1, 2, 4, 8
_INPUT, _OUTPUT, _WORKSPACE, _TILING = range(4)
_POISON = 0xCD


class _Buffer(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("role", ctypes.c_int))


class Simulator:
    """One kernel on one chip. Runs do not depend on each other; not for two threads at once."""

    def __init__(self, library: Path, symbol: str, chip: Chip) -> None:
        """`symbol` is the kernel's entry in a library made by `build`.

        Raises InvalidInput where the library does not load or has no such entry.
        """
        try:
            self._library = ctypes.CDLL(str(library))
            entry = getattr(self._library, symbol)
        except (OSError, AttributeError) as error:
            raise InvalidInput(f"{library}: {error}") from error
        self._entry = ctypes.cast(entry, ctypes.c_void_p)
        self._call = self._library.gafsim_run
        self._call.restype = ctypes.c_char_p
        self._call.argtypes = (
            ctypes.c_void_p, ctypes.POINTER(_Buffer), ctypes.c_int, ctypes.c_int64,
            ctypes.c_char_p, ctypes.c_int,
        )  # fmt: skip
        self._chip = chip
        self._parameters = _parameters(chip).encode()

    def close(self) -> None:
        """Unloads the kernel; the simulator is not usable afterwards."""
        _ctypes.dlclose(self._library._handle)

    def run(
        self,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        *,
        tiling: bytes,
        blocks: int,
        workspace_bytes: int = 0,
        check: bool = True,
        order: bool = True,
        timing: bool = True,
        trace: bool = False,
    ) -> SimResult:
        """Calls the kernel as `symbol(inputs…, outputs…, workspace, tiling)` on `blocks` blocks.

        `check` runs all blocks with data and rules, and fills `outputs`; without it they keep what
        they hold. Without `order` nothing is said of races, of reads of what nothing has written
        and of writes to inputs. `timing` gives the simulated time (not where a rule is broken).
        `trace` adds the events of all pipes. Broken rules are in the result; nothing is raised for
        them.
        """
        if blocks < 1:
            raise InvalidInput(f"{blocks} blocks: expected at least one")
        holders = [_bytes_of(array, copy=check) for array in inputs]
        results = [_aligned(array.nbytes) for array in outputs]
        if check:
            for holder in results:
                holder[:] = _POISON
        holders += results
        holders.append(_aligned(workspace_bytes))
        if not check:
            holders[-1][:] = 0  # positions may be read from it
        holders.append(_aligned(len(tiling)))
        holders[-1][:] = np.frombuffer(tiling, np.uint8)
        roles = [_INPUT] * len(inputs) + [_OUTPUT] * len(outputs) + [_WORKSPACE, _TILING]
        flags = _CHECK * check + _TIMING * timing + _TRACE * trace + _ORDER * order
        report = self._report(holders, roles, blocks, flags)
        if check:
            for holder, array in zip(results, outputs, strict=True):
                array[...] = holder.view(array.dtype).reshape(array.shape)
        return to_result(report, self._chip)

    def _report(
        self, holders: Sequence[np.ndarray], roles: Sequence[int], blocks: int, flags: int
    ) -> dict[str, Any]:
        buffers = (_Buffer * len(holders))(
            *(
                _Buffer(holder.ctypes.data, holder.nbytes, role)
                for holder, role in zip(holders, roles, strict=True)
            )
        )
        text = self._call(self._entry, buffers, len(holders), blocks, self._parameters, flags)
        report: dict[str, Any] = json.loads(text)
        if "error" in report:
            raise InternalError(f"simulator: {report['error']}")
        return report


def _bytes_of(array: np.ndarray, *, copy: bool) -> np.ndarray:
    """An input as the kernel reads it: its own bytes where nothing can write to them."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if not copy:
        return flat
    holder = _aligned(flat.nbytes)
    holder[:] = flat
    return holder


def _aligned(size: int) -> np.ndarray:
    """`size` bytes at a GM-aligned address. The bytes are not set."""
    space = np.empty(size + _ALIGNMENT, np.uint8)
    start = -space.ctypes.data % _ALIGNMENT
    return space[start : start + size]


def _parameters(chip: Chip) -> str:
    """The chip as the runtime reads it: one "name value" a line, rates per cycle."""
    values: dict[str, float] = {
        "cube_cores": chip.cube_cores, "vector_cores": chip.vector_cores, "mhz": chip.mhz,
        "ub_reserved": chip.ub_reserved_bytes, "vector_start": chip.vector_start_cycles,
        "bank_read_read": chip.bank_read_read_cycles,
        "bank_read_write": chip.bank_read_write_cycles, "issue": chip.issue_cycles,
        "scalar_read": chip.scalar_read_cycles, "scalar_write": chip.scalar_write_cycles,
        "scalar_gm": chip.scalar_gm_cycles, "event": chip.event_cycles,
        "core_flag": chip.core_flag_cycles, "sync_all": chip.sync_all_cycles,
        "hbm": chip.hbm_bytes_per_cycle, "l2": chip.l2_bytes_per_cycle,
        "read_start": chip.gm_read_start_cycles, "write_start": chip.gm_write_start_cycles,
        "read_rate": chip.gm_read_rate, "write_rate": chip.gm_write_rate,
        "cube_rate": chip.gm_cube_rate,
        "burst": chip.gm_burst_bytes, "sector": chip.gm_sector_bytes,
        "copy_issue": chip.copy_issue_cycles, "ub_rate": chip.ub_copy_rate,
        "ub_start": chip.ub_copy_start_cycles, "l0a_rate": chip.l0a_rate,
        "l0a_start": chip.l0a_start_cycles, "l0b_rate": chip.l0b_rate,
        "l0b_start": chip.l0b_start_cycles, "bt_rate": chip.bt_rate,
        "bt_start": chip.bt_start_cycles, "fix_rate": chip.fix_elements_per_cycle,
        "fix_start": chip.fix_start_cycles, "mmad_start": chip.mmad_start_cycles,
        "block_start": chip.block_start_cycles,
        "fixed.PipeBarrier": chip.barrier_cycles,
        "fixed.SetFlag": chip.barrier_cycles, "fixed.WaitFlag": chip.barrier_cycles,
        "fixed.AllocTensor": chip.queue_cycles, "fixed.EnQue": chip.queue_cycles,
        "fixed.DeQue": chip.queue_cycles, "fixed.FreeTensor": chip.queue_cycles,
    }  # fmt: skip
    for memory in _MEMORIES:
        values[f"capacity.{memory}"] = getattr(chip, f"{memory}_bytes")
    for name, cost in chip.instructions.items():
        values[f"repeat.{name}"] = cost.repeat
        values[f"fixed.{name}"] = cost.fixed
    return "\n".join(f"{name} {value!r}" for name, value in values.items())
