"""Elements that are compared before each call lie inside of their tensor, whatever its layout."""

from __future__ import annotations

import pytest
import torch

from graph_autofusion.looked_at import cells


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(24.0).view(4, 6),
        torch.arange(24).view(4, 6).t(),
        torch.arange(60, dtype=torch.float16).view(3, 20)[:, 5:7],
        torch.arange(5, dtype=torch.uint8)[1:],
        torch.full((6,), 2j, dtype=torch.complex128),
        torch.randn(1).expand(4, 4),
        torch.tensor(3.0),
    ],
    ids=["dense", "transposed", "part", "bytes", "complex", "expanded", "scalar"],
)
def test_looked_at_are_first_last_and_inner_elements(tensor: torch.Tensor) -> None:
    found = cells(tensor)
    assert 1 <= len(found) <= 4
    before = [cell.value for cell in found]
    ends = tensor.reshape(-1)[[0, -1]].tolist()
    tensor.data.fill_(7)
    changed = [cell.value for cell in found] != before
    assert changed or ends == [7, 7]


@pytest.mark.parametrize(
    "tensor",
    [torch.empty(0, 3), torch.empty(3, device="meta"), torch.eye(3).to_sparse()],
    ids=["empty", "meta", "sparse"],
)
def test_nothing_is_read_where_there_is_no_memory(tensor: torch.Tensor) -> None:
    assert cells(tensor) == []
