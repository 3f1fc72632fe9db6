"""Elements that a program puts through exponentials and their kin, by the function that kernels
take them with."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.suite.peers.work import leaves

_aten = torch.ops.aten
_FUNCTIONS = {
    _aten.exp: "exp",
    _aten.exp_: "exp",
    _aten._softmax: "exp",
    _aten._safe_softmax: "exp",
    _aten._log_softmax: "exp",
    _aten.sigmoid: "sigmoid",
    _aten.sigmoid_: "sigmoid",
    _aten.silu: "sigmoid",
    _aten.silu_: "sigmoid",
    _aten.tanh: "tanh",
    _aten.tanh_: "tanh",
    _aten.erf: "erf",
    _aten.gelu: "erf",
}


class Functions(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts, while it is on, the elements of the results of such ops."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.elems: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = _FUNCTIONS.get(func.overloadpacket)
        if name is not None:
            by_tanh = name == "erf" and (kwargs or {}).get("approximate") == "tanh"
            self.elems["tanh" if by_tanh else name] += leaves(result)[0].numel()
        return result
