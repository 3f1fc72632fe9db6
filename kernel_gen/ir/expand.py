"""Composites as primitives.

`expand` writes a composite as a graph of primitives with eager's numerics: a narrow float is
widened to its compute type once, everything in between stays wide, the result is rounded once.

    softmax(x: bf16, dim=1)
      -> cast f32, amax, sub, exp, sum, div, cast bf16
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.call import Call, make_call, shape_attr
from kernel_gen.ir.emitter import Emitter
from kernel_gen.ir.expand_activation import ACTIVATIONS
from kernel_gen.ir.expand_attention import expand_attention
from kernel_gen.ir.expand_convolution import expand_conv_transpose, expand_conv_weight_gradient
from kernel_gen.ir.expand_norm import (
    expand_batch_norm,
    expand_group_norm,
    expand_layer_norm,
    expand_log_softmax,
    expand_mean,
    expand_rms_norm,
    expand_softmax,
    expand_std,
    expand_var,
)
from kernel_gen.ir.expand_pool import expand_avg_pool, expand_max_pool
from kernel_gen.ir.expand_pool_gradient import (
    expand_argmax_pool,
    expand_avg_pool_gradient,
    expand_max_pool_gradient,
)
from kernel_gen.ir.expand_resize import expand_resize
from kernel_gen.ir.expand_topk import expand_argtopk, expand_topk
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.types import Sym, TensorType

Expansion = Callable[[Emitter, Call, tuple[int, ...]], int]


def expand(node: Node, operand_types: Sequence[TensorType]) -> Graph:
    """The primitives of a composite: one input per operand, in order, and one output.

    Raises InvalidGraph if the node is no composite or its operands do not fit.
    """
    rule = _RULES.get(node.op)
    if rule is None:
        raise InvalidGraph(f"{node.op[:80]!r} is not a composite")
    plain = tuple(TensorType(type.dtype, type.shape) for type in operand_types)
    builder = GraphBuilder()
    for name in _symbols(plain):
        builder.symbol(name, 0, 2**48, 0)
    operands = tuple(builder.input(type) for type in plain)
    e, call = Emitter(builder), make_call(node.op, plain, node.attrs)
    made = rule(e, call, operands)
    if made in operands:  # an output is a value of its own, also of an op that changes nothing
        made = e.op("reshape", made, shape=shape_attr(builder.type_of(made).shape))
    builder.output(made)
    return builder.build()


def _symbols(types: Sequence[TensorType]) -> list[str]:
    return sorted({dim.name for type in types for dim in type.shape if isinstance(dim, Sym)})


def _expand_linear(e: Emitter, call: Call, operands: tuple[int, ...]) -> int:
    """x (…, K), weight (N, K): matmul with the transposed weight, plus bias; rounded once."""
    x, weight, *bias = (e.widen(value) for value in operands)
    transposed = e.op("permute", weight, dims=(1, 0))
    if call.x.rank == 1:
        row = e.reshape(x, (1, call.x.shape[0]))
        product = e.reshape(e.op("matmul", row, transposed), (call.operands[1].shape[0],))
    else:
        product = e.op("matmul", x, transposed)
    total = e.op("add", product, *bias) if bias else product
    return e.cast(total, call.x.dtype)


_RULES: dict[str, Expansion] = {
    "linear": _expand_linear,
    "layer_norm": expand_layer_norm,
    "rms_norm": expand_rms_norm,
    "group_norm": expand_group_norm,
    "batch_norm": expand_batch_norm,
    "softmax": expand_softmax,
    "log_softmax": expand_log_softmax,
    "mean": expand_mean,
    "var": expand_var,
    "std": expand_std,
    "attention": expand_attention,
    "conv_transpose": expand_conv_transpose,
    "conv_weight_gradient": expand_conv_weight_gradient,
    "max_pool": expand_max_pool,
    "avg_pool": expand_avg_pool,
    "argmax_pool": expand_argmax_pool,
    "max_pool_gradient": expand_max_pool_gradient,
    "avg_pool_gradient": expand_avg_pool_gradient,
    "resize": expand_resize,
    "topk": expand_topk,
    "argtopk": expand_argtopk,
    **ACTIVATIONS,
}
