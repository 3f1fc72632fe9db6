"""Output buffers: reused once nothing can see them, never before."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.torch_glue.pool import OutputPool, recycling_works

TYPE = TensorType(DType.F32, (4, 8))


def test_this_torch_counts_as_expected() -> None:
    assert recycling_works()


def test_a_dead_buffer_is_reused() -> None:
    pool = OutputPool(TYPE)
    first = pool.take()
    address = first.data_ptr()
    del first
    assert pool.take().data_ptr() == address


HOLDERS: dict[str, Callable[[torch.Tensor], object]] = {
    "itself": lambda t: t,
    "view": lambda t: t[1:, ::2],
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "numpy": lambda t: t.numpy(),
    "numpy view": lambda t: t.numpy()[2:, 1],
    "memoryview": lambda t: memoryview(t.numpy()),
    "array interface": lambda t: np.asarray(t),
    "storage": lambda t: t.untyped_storage(),
    "dlpack": lambda t: np.from_dlpack(t),
    "capsule": lambda t: torch.utils.dlpack.to_dlpack(t),
    "parameter": lambda t: torch.nn.Parameter(t),
    "other dtype": lambda t: t.view(torch.int32),
    "container": lambda t: {"t": [t]},
    "set": lambda t: torch.empty(0).set_(t.untyped_storage(), 0, (2,), (1,)),
    "saved for backward": lambda t: torch.ones(4, 8, requires_grad=True) * t,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_whatever_sees_the_storage_keeps_it(holder: str) -> None:
    pool = OutputPool(TYPE)
    tensor = pool.take()
    address = tensor.data_ptr()
    held = HOLDERS[holder](tensor)
    del tensor
    others = [pool.take() for _ in range(3)]
    assert address not in {other.data_ptr() for other in others}
    del held
    assert pool.take().data_ptr() == address


def test_tensors_alive_never_share() -> None:
    pool = OutputPool(TYPE)
    alive = [pool.take() for _ in range(50)]
    assert len({tensor.data_ptr() for tensor in alive}) == 50
    assert len(pool._buffers) <= 4


def test_buffers_come_back_after_many_were_alive() -> None:
    pool = OutputPool(TYPE)
    alive = [pool.take() for _ in range(50)]
    alive.clear()
    first = pool.take()
    address = first.data_ptr()
    del first
    assert pool.take().data_ptr() == address


def test_moved_storage_is_not_used_again() -> None:
    pool = OutputPool(TYPE)
    tensor = pool.take()
    tensor.untyped_storage().resize_(0)
    del tensor
    again = pool.take()
    assert again.untyped_storage().nbytes() >= 4 * 8 * 4
    again.fill_(1.0)


def test_grown_storage_is_not_used_again() -> None:
    pool = OutputPool(TYPE)
    tensor = pool.take()
    tensor.resize_(100, 100)
    del tensor
    assert pool.take().untyped_storage().nbytes() == 4 * 8 * 4


def test_metadata_of_a_result_is_its_own() -> None:
    pool = OutputPool(TYPE)
    first = pool.take()
    first.resize_(2, 2)
    first.requires_grad_()
    del first
    second = pool.take()
    assert not second.requires_grad
    assert second.shape == (4, 8)
    assert not second._is_view()


def test_strides_and_dtypes() -> None:
    for dtype, torch_dtype in ((DType.BF16, torch.bfloat16), (DType.BOOL, torch.bool)):
        tensor = OutputPool(TensorType(dtype, (3, 2), (1, 3))).take()
        assert tensor.dtype == torch_dtype
        assert tensor.stride() == (1, 3)
    assert OutputPool(TensorType(DType.I64, ())).take().shape == ()
    assert OutputPool(TensorType(DType.I64, (0, 2))).take().shape == (0, 2)


def test_threads_get_different_memory() -> None:
    pool = OutputPool(TYPE)
    clashes: list[int] = []

    def work(mark: float) -> None:
        for _ in range(300):
            tensor = pool.take()
            tensor.fill_(mark)
            if not bool((tensor == mark).all()):
                clashes.append(1)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == []


def test_results_of_one_type_are_all_recycled() -> None:
    """Twelve results of one type, replaced call by call as `y = f(x)` does: two sets suffice."""
    pool = OutputPool(TYPE, per_call=12)
    results: list[torch.Tensor] = []
    seen: set[int] = set()
    for _ in range(10):
        results = [pool.take() for _ in range(12)]
        assert len({tensor.data_ptr() for tensor in results}) == 12
        seen |= {tensor.data_ptr() for tensor in results}
    assert len(seen) == 24
