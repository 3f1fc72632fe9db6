"""The vocabulary: every op that a graph may hold, by kind.

Primitives have one output and NumPy broadcasting; operands of an elementwise primitive have one
dtype (front ends insert `cast`). Composites carry their expansion into primitives
(`kernel_gen.ir.expand`). `framework` is anything else: torch runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OpKind(StrEnum):
    UNARY = "unary"  # elementwise, result of the operand's dtype
    PREDICATE = "predicate"  # elementwise unary with a bool result
    BINARY = "binary"  # elementwise, result of the operands' dtype
    COMPARE = "compare"  # elementwise binary with a bool result
    SELECT = "select"  # where(condition: bool, a, b)
    CAST = "cast"  # attr dtype; float -> integer truncates, -> bool is `!= 0`
    VIEW = "view"  # an index map
    JOIN = "join"  # several operands into one: concat
    INDEXED = "indexed"  # read at positions held in another tensor
    SOURCE = "source"  # no operands: full, iota
    REDUCTION = "reduction"
    CONTRACTION = "contraction"  # matmul, convolution
    COMPOSITE = "composite"
    FRAMEWORK = "framework"


@dataclass(frozen=True, slots=True)
class OpSpec:
    """Name, kind and number of operands (None: any) of an op, and its attributes' names."""

    name: str
    kind: OpKind
    arity: int | None
    attrs: tuple[str, ...] = ()

    @property
    def is_elementwise(self) -> bool:
        return self.kind in _ELEMENTWISE


_ELEMENTWISE = frozenset(
    (OpKind.UNARY, OpKind.PREDICATE, OpKind.BINARY, OpKind.COMPARE, OpKind.SELECT, OpKind.CAST)
)


def _specs(kind: OpKind, arity: int | None, names: str, *attrs: str) -> dict[str, OpSpec]:
    return {name: OpSpec(name, kind, arity, attrs) for name in names.split()}


OPS: dict[str, OpSpec] = {
    # abs of an integer wraps; sign, floor, ceil, round (half to even), trunc keep the dtype
    **_specs(
        OpKind.UNARY,
        1,
        "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos "
        "atan sinh cosh tanh erf erfc sigmoid relu sign floor ceil round trunc "
        "logical_not bitwise_not",
    ),
    **_specs(OpKind.PREDICATE, 1, "isnan isinf isfinite"),
    # maximum/minimum propagate NaN from both sides; div is true division (floats); floor_div and
    # remainder follow Python's sign, fmod C's; pow, atan2 on floats; shifts and bitwise on integers
    **_specs(
        OpKind.BINARY,
        2,
        "add sub mul div floor_div remainder fmod pow maximum minimum atan2 copysign "
        "bitwise_and bitwise_or bitwise_xor shift_left shift_right",
    ),
    **_specs(OpKind.COMPARE, 2, "eq ne lt le gt ge"),
    # logical ops take bool operands (front ends cast)
    **_specs(OpKind.BINARY, 2, "logical_and logical_or logical_xor"),
    **_specs(OpKind.SELECT, 3, "where"),
    **_specs(OpKind.CAST, 1, "cast", "dtype"),
    **_specs(OpKind.VIEW, 1, "reshape", "shape"),
    **_specs(OpKind.VIEW, 1, "permute", "dims"),
    **_specs(OpKind.VIEW, 1, "expand", "shape"),  # numpy.broadcast_to
    **_specs(OpKind.VIEW, 1, "slice", "dim", "start", "stop", "step"),  # step >= 1, resolved bounds
    **_specs(OpKind.VIEW, 1, "flip", "dims"),
    **_specs(OpKind.VIEW, 1, "pad", "low", "high", "value"),  # constant; per-dimension counts >= 0
    **_specs(OpKind.JOIN, None, "concat", "dim"),
    # gather(x, index, dim): out[i…] = x[i… with i_dim := index[i…]], as torch.gather
    # take(table, index, dim): table.index_select along dim with an index of any rank (embedding)
    **_specs(OpKind.INDEXED, 2, "gather take", "dim"),
    # Shapes in attributes are extents or symbol names: (2, "s0"). A float `full` holds its value in
    # the compute type (0.1 beside bf16 is 0.1f): eager's Python scalars are not rounded either.
    **_specs(OpKind.SOURCE, 0, "full", "shape", "dtype", "value"),
    **_specs(OpKind.SOURCE, 0, "iota", "shape", "dtype", "dim", "start", "step"),
    # dims non-negative, ascending; sum/prod of integers: front ends cast to i64 first as torch
    **_specs(OpKind.REDUCTION, 1, "sum prod amax amin any all", "dims", "keepdim"),
    # i64 position, first of equals, NaN wins; one dim, or all dims (flattened, logical order)
    **_specs(OpKind.REDUCTION, 1, "argmax argmin", "dims", "keepdim"),
    # matmul: (…, M, K) x (…, K, N), batch broadcast, both rank >= 2, accumulated in fp32 or wider
    **_specs(OpKind.CONTRACTION, 2, "matmul"),
    # convolution(x, w[, bias]): NC… layout, attributes as torch's
    **_specs(OpKind.CONTRACTION, None, "convolution", "stride", "padding", "dilation", "groups"),
    # Composites; operands in torch's order, absent optional ones left out and told by an attribute.
    **_specs(OpKind.COMPOSITE, None, "linear"),  # x, weight (N, K)[, bias]
    **_specs(
        OpKind.COMPOSITE, None, "layer_norm", "axes", "eps", "weight", "bias"
    ),  # last `axes` dims
    **_specs(OpKind.COMPOSITE, None, "rms_norm", "axes", "eps", "weight"),
    **_specs(OpKind.COMPOSITE, None, "group_norm", "groups", "eps", "weight", "bias"),
    **_specs(
        OpKind.COMPOSITE, None, "batch_norm", "eps", "weight", "bias"
    ),  # x, mean, var[, w][, b]
    **_specs(OpKind.COMPOSITE, 1, "softmax log_softmax", "dim"),
    **_specs(OpKind.COMPOSITE, 1, "gelu", "approximate"),  # "none" or "tanh"
    **_specs(
        OpKind.COMPOSITE, 1, "silu hardswish hardsigmoid relu6 mish softplus logsigmoid square"
    ),
    **_specs(OpKind.COMPOSITE, 1, "leaky_relu", "slope"),
    **_specs(OpKind.COMPOSITE, 1, "elu", "alpha", "scale"),
    **_specs(OpKind.COMPOSITE, 1, "clamp", "low", "high"),  # None: unbounded
    **_specs(OpKind.COMPOSITE, 1, "mean", "dims", "keepdim"),
    **_specs(OpKind.COMPOSITE, 1, "var std", "dims", "keepdim", "correction"),
    # torch's: x (N, I, …), weight (I, O / groups, kernel…)[, bias (O)]
    **_specs(
        OpKind.COMPOSITE,
        None,
        "conv_transpose",
        *("stride", "padding", "output_padding", "dilation", "groups"),
    ),
    # of the weight of a convolution of x, from the gradient of its result
    **_specs(
        OpKind.COMPOSITE,
        2,
        "conv_weight_gradient",
        *("kernel", "stride", "padding", "dilation", "groups"),
    ),
    # windows over the last dims; low and high: -inf or 0 around the image, counted in the mean
    **_specs(OpKind.COMPOSITE, 1, "max_pool", "kernel", "stride", "low", "high", "dilation"),
    **_specs(OpKind.COMPOSITE, 1, "avg_pool", "kernel", "stride", "low", "high"),
    # flat places in the image of what max_pool takes; gradients of the image from the result's
    **_specs(OpKind.COMPOSITE, 1, "argmax_pool", "kernel", "stride", "low", "high", "dilation"),
    **_specs(
        OpKind.COMPOSITE,
        2,
        "max_pool_gradient",
        *("image", "kernel", "stride", "low", "high", "dilation"),
    ),
    **_specs(OpKind.COMPOSITE, 1, "avg_pool_gradient", "image", "kernel", "stride", "low", "high"),
    # the last dims become `sizes`; mode "linear" or "cubic"; scales are the caller's, 0: none given
    **_specs(OpKind.COMPOSITE, 1, "resize", "sizes", "scales", "mode", "align"),
    # the k largest along dim, the largest first; the positions (i64) of the same
    **_specs(OpKind.COMPOSITE, 1, "topk argtopk", "dim", "k"),
    # q (B…, H, S, D), k, v[, mask additive or bool]
    **_specs(OpKind.COMPOSITE, None, "attention", "scale", "causal", "mask"),
    # target "aten.sort.default", args encoded by kernel_gen.frontend; code and sentence say why
    **_specs(OpKind.FRAMEWORK, None, "framework", "target", "args", "code", "sentence"),
}


def spec(op: str) -> OpSpec:
    """The OpSpec of `op`; raises KeyError."""
    return OPS[op]
