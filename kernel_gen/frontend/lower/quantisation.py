"""Values rounded to the steps of a quantised type and kept as floats."""

from __future__ import annotations

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, lowers
from kernel_gen.ir.dtype import DType


@lowers("fake_quantize_per_tensor_affine.default")
def per_tensor(c: Lowering, a: Args) -> Result:
    step = c.exact_number(a["scale"], DType.F32)
    return _on_steps(c, a, step, c.number(a["zero_point"], DType.F32), DType.F32)


@lowers("fake_quantize_per_tensor_affine.tensor_qparams")
def by_tensors(c: Lowering, a: Args) -> Result:
    held = [c.cast(c.reshape(a[name], ()), DType.F32) for name in ("scale", "zero_point")]
    return _on_steps(c, a, held[0], held[1], DType.F32)


@lowers("fake_quantize_per_channel_affine")
def per_channel(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    if a["zero_point"].dtype.is_float:
        raise NotLowered(f"{c.name} with zero points that are not whole", decompose=False)
    dim = a["axis"] % value.rank
    shape = tuple(extent if d == dim else 1 for d, extent in enumerate(value.shape))
    held = [c.cast(c.reshape(a[name], shape), DType.F32) for name in ("scale", "zero_point")]
    return _on_steps(c, a, held[0], held[1], value.dtype.compute)


def _on_steps(c: Lowering, a: Args, step: Val, zero: Val, scaled: DType) -> Val:
    """(clamp(round(x · (1 / step)) + zero) - zero) · step, the last product of type `scaled`, as
    torch has it; NaN is the lowest step."""
    value: Val = a["self"]
    low, high = (float(a[name]) for name in ("quant_min", "quant_max"))
    wide = c.cast(value, value.dtype.compute)
    inverse = c.cast(c.op("reciprocal", step), wide.dtype)
    place = c.cast(c.op("round", c.op("mul", wide, inverse)), DType.F32)
    place = c.op("clamp", c.op("add", place, zero), low=low, high=high)
    place = c.op("where", c.op("isnan", value), c.number(low, DType.F32), place)
    steps = c.cast(c.op("sub", place, zero), scaled)
    return c.cast(c.op("mul", steps, c.cast(step, scaled)), value.dtype)
