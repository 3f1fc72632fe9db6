"""Loaded kernels: operands are checked, constants packed once, scratch aligned, calls timed."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gen.codegen.cpu.abi import KERNEL_ABI
from kernel_gen.codegen.source import KernelSource, Pack
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import axis_index
from kernel_gen.ir.loopnest import Axis, Buffer, BufferRole, Load, LoopNest, Store
from kernel_gen.ir.types import TensorType
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.kernel import LoadedKernel
from kernel_gen.runtime.timer import Timer

TEXT = f"""{KERNEL_ABI}
extern "C" void pack_it(const void *src, void *dst) {{
  static int calls = 0;
  for (int i = 0; i < 4; i++) ((float *)dst)[i] = 10 * ((const float *)src)[i];
  ((float *)dst)[4] = ++calls;
}}
extern "C" int copy(const gaf_kernel_args *args) {{
  const float *x = (const float *)args->operands[0];
  for (int i = 0; i < 4; i++) ((float *)args->operands[1])[i] = x[i] + x[4];
  if ((gaf_u64)args->scratch % 64) return 9;
  for (int i = 0; i < 100 * args->n_threads; i++) ((char *)args->scratch)[i] = 1;
  return args->n_threads == 7 ? 5 : 0;
}}
"""


def copy_nest() -> LoopNest:
    kind = TensorType(DType.F32, (4,))
    i = axis_index("i")
    return LoopNest(
        (Axis("i", 4),),
        (Buffer(kind, BufferRole.CONSTANT), Buffer(kind, BufferRole.OUTPUT)),
        (Load(0, (i,), DType.F32),),
        (Store(1, (i,), 0),),
    )


@pytest.fixture(scope="module")
def source() -> KernelSource:
    return KernelSource("copy", (("copy.cpp", TEXT),), (Pack(0, 20, "pack_it"),), 100)


@pytest.fixture
def kernel(compiler: Compiler, source: KernelSource) -> LoadedKernel:
    built = compiler.compile([source], host_target())
    assert not isinstance(built, Failure), built.message
    return LoadedKernel(compiler.path_of(built), source, copy_nest())


def test_constants_are_packed_once_per_array(kernel: LoadedKernel) -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    assert kernel.run([x, out], 2) == 0
    calls = out[0]
    np.testing.assert_array_equal(out, 10 * x + calls)
    assert kernel.run([x, out], 2) == 0
    assert out[0] == calls
    assert kernel.run([x.copy(), out], 2) == 0
    assert out[0] == calls + 1


def test_status_is_handed_on(kernel: LoadedKernel) -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    assert kernel.run([x, out], 7) == 5


def test_operands_that_do_not_fit_are_refused(kernel: LoadedKernel) -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    frozen = out.copy()
    frozen.flags.writeable = False
    for operands, message in [
        ([x], "1 operands"),
        ([x.astype(np.float64), out], "dtype"),
        ([x, np.zeros(5, np.float32)], "shape"),
        ([x, np.zeros(8, np.float32)[::2]], "strides"),
        ([x, frozen], "read-only"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            kernel.prepare(operands)


def test_calls_of_one_kernel_may_share_their_scratch(kernel: LoadedKernel) -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    first, other = kernel.prepare([x, out], 2), kernel.prepare([x, out], 2)
    assert kernel.prepare([x, out], 2, like=first).args.scratch == first.args.scratch
    assert other.args.scratch != first.args.scratch


def test_missing_entry_is_unavailable(compiler: Compiler, source: KernelSource) -> None:
    built = compiler.compile([source], host_target())
    assert not isinstance(built, Failure)
    renamed = KernelSource("absent", source.files)
    with pytest.raises(Unavailable, match="absent"):
        LoadedKernel(compiler.path_of(built), renamed, copy_nest())


def test_timing_loop_counts_and_reports_status(compiler: Compiler, kernel: LoadedKernel) -> None:
    timer = Timer.build(compiler, host_target())
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    assert timer.time_ns(kernel, kernel.prepare([x, out], 1), 1000) > 0
    assert timer.time_ns(kernel, kernel.prepare([x, out], 7), 1000) == -5
