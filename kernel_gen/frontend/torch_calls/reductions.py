"""Reductions, moments, positions and the largest ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch

from kernel_gen.frontend.torch_calls.attrs import Attrs, Call, Maker

Tensor = torch.Tensor


def _over_all(
    function: Callable[[Tensor, tuple[int, ...], bool], Tensor],
) -> Maker:
    """A reduction that torch offers over several dims; no dims means one element each."""

    def make(a: Attrs) -> Call:
        dims, keepdim = a.ints("dims"), a.flag("keepdim")
        if dims:
            return lambda x: function(x, dims, keepdim)
        return lambda x: function(x.unsqueeze(0), (0,), False)

    return make


def _sum(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return torch.sum(x, dims, keepdim=keepdim, dtype=x.dtype)


def _prod(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if len(dims) == x.dim() and not keepdim:
        return torch.prod(x, dtype=x.dtype)
    for dim in reversed(dims):
        x = torch.prod(x, dim, keepdim=keepdim, dtype=x.dtype)
    return x


def extreme(
    x: Tensor, dims: tuple[int, ...] | list[int], keepdim: bool, *, largest: bool
) -> Tensor:
    """The largest or smallest elements. Of no elements, where torch raises, the largest one is the
    lowest value of the type and the smallest one its highest, as in kernels."""
    function = torch.amax if largest else torch.amin
    if all(x.shape[dim] for dim in dims):
        return function(x, dims, keepdim)
    reduced = {dim % x.dim() for dim in dims}
    one_each = [1 if dim in reduced else extent for dim, extent in enumerate(x.shape)]
    return function(x.new_full(one_each, _bound(x.dtype, lowest=largest)), dims, keepdim)


def _bound(dtype: torch.dtype, *, lowest: bool) -> float | int | bool:
    if dtype is torch.bool:
        return not lowest
    if dtype.is_floating_point:
        return -math.inf if lowest else math.inf
    info = torch.iinfo(dtype)
    return info.min if lowest else info.max


def _truth(function: Call) -> Callable[[Tensor, tuple[int, ...], bool], Tensor]:
    return lambda x, dims, keepdim: function(x, dims, keepdim)


def _position(function: Call) -> Callable[[Tensor, tuple[int, ...], bool], Tensor]:
    def position(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
        if len(dims) == 1:
            along: Tensor = function(x, dims[0], keepdim)
            return along
        found: Tensor = function(x)
        return found.reshape((1,) * x.dim()) if keepdim else found

    return position


def _spread(function: Call) -> Maker:
    def make(a: Attrs) -> Call:
        correction = a.float("correction")
        over = _over_all(
            lambda x, dims, keepdim: function(x, dims, correction=correction, keepdim=keepdim)
        )
        return over(a)

    return make


def _topk(result: int) -> Maker:
    """`result`: 0 gives values, 1 positions."""

    def make(a: Attrs) -> Call:
        dim, k = a.int("dim"), a.int("k")
        return lambda x: torch.topk(x, k, dim)[result]

    return make


MAKERS: dict[str, Maker] = {
    "sum": _over_all(_sum),
    "prod": _over_all(_prod),
    "amax": _over_all(partial(extreme, largest=True)),
    "amin": _over_all(partial(extreme, largest=False)),
    "any": _over_all(_truth(torch.any)),
    "all": _over_all(_truth(torch.all)),
    "argmax": _over_all(_position(torch.argmax)),
    "argmin": _over_all(_position(torch.argmin)),
    "mean": _over_all(_truth(torch.mean)),
    "var": _spread(torch.var),
    "std": _spread(torch.std),
    "topk": _topk(0),
    "argtopk": _topk(1),
}
