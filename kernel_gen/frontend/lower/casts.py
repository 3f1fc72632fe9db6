"""Casts, and operators that give their operand."""

from __future__ import annotations

from kernel_gen.frontend.dtypes import from_torch, is_supported
from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Result,
    Val,
    lowers,
)


@lowers("_to_copy to.dtype to.dtype_layout to.device type_as to.other")
def cast(c: Lowering, a: Args) -> Result:
    return c.cast(a["self"], c.out_type.dtype)


@lowers(
    "clone contiguous detach detach_ alias lift lift_fresh lift_fresh_copy positive resolve_conj "
    "resolve_neg alias_copy"
)
def identity(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    return value


@lowers("convert_element_type")
def convert_element_type(c: Lowering, a: Args) -> Result:
    if not is_supported(a["dtype"]):
        raise NotLowered(f"{c.name} to {a['dtype']}", decompose=False)
    return c.cast(a["a"], from_torch(a["dtype"]))
