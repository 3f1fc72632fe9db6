"""After a capture: letting go of the model's tensors."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor


def release(program: torch.export.ExportedProgram) -> None:
    """Drops weak references to the tensors that `program` was exported from.

    torch's caches keep the fake tensors of an export alive, and with them references to the true
    ones, which `torch.utils.swap_tensors` then refuses to swap.
    """
    values = (node.meta.get("val") for node in program.graph.nodes)
    modes = {id(v.fake_mode): v.fake_mode for v in values if isinstance(v, FakeTensor)}
    for mode in modes.values():
        mode.fake_tensor_converter.meta_converter.describer.lookup_tensor.clear()
