"""Complex tensors of an exported program, which a graph holds as pairs of real numbers.

complex64[s…] is f32[s…, 2], the form of `torch.view_as_real`: the same memory. Ops that torch runs
are given complex views of it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from kernel_gen.frontend.lower.core import Pair, Val

Values = Val | tuple[Val | None, ...]


def reads_or_gives_complex(node: fx.Node) -> bool:
    """Whether a call has complex operands or results."""
    return any(_is_complex(item.meta.get("val")) for item in (node, *node.all_input_nodes))


def _is_complex(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_complex, value))
    return isinstance(value, torch.Tensor) and value.is_complex()


def as_pairs(made: Values, traced: Any) -> Values:
    """The values of a call's results, those of complex tensors as `Pair`; `traced` is what torch
    gave for them."""
    if isinstance(made, Val):
        return _as_pair(made, traced)
    pairs = zip(made, traced, strict=True)
    return tuple(None if value is None else _as_pair(value, tensor) for value, tensor in pairs)


def _as_pair(value: Val, tensor: object) -> Val:
    return Pair(value.id, value.type) if _is_complex(tensor) else Val(value.id, value.type)


def parts_of(result: Any) -> Any:
    """What an operator gave, complex tensors as pairs."""
    if isinstance(result, torch.Tensor):
        return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result
    return tuple(map(parts_of, result)) if isinstance(result, list | tuple) else result
