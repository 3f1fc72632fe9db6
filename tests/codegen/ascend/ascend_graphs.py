"""Graphs that the tests of the Ascend generator build kernels for."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.types import Sym, TensorType, ValueDomain

F32, F16, BF16 = DType.F32, DType.F16, DType.BF16


def tensor(*shape: int | str, dtype: DType = F32) -> TensorType:
    """A type; names are symbols."""
    return TensorType(dtype, tuple(Sym(d) if isinstance(d, str) else d for d in shape))


def graph(build: Callable[[GraphBuilder], int], *symbols: str) -> Graph:
    """A graph of one output."""
    b = GraphBuilder()
    for name in symbols:
        b.symbol(name, 1, 100_000, 64)
    b.output(build(b))
    return b.build()


def symbols(*shapes: tuple[int | str, ...]) -> list[str]:
    """Names among the extents, each once."""
    return list(dict.fromkeys(d for shape in shapes for d in shape if isinstance(d, str)))


def chain(*shape: int | str, dtype: DType = F32) -> Graph:
    """exp(x · y) + x."""

    def build(b: GraphBuilder) -> int:
        x, y = b.input(tensor(*shape, dtype=dtype)), b.input(tensor(*shape, dtype=dtype))
        return b.op("add", b.op("sigmoid", b.op("mul", x, y)), x)

    return graph(build, *symbols(shape))


def bias_relu(*shape: int | str, dtype: DType = F32) -> Graph:
    """relu(x + b), b along the columns."""

    def build(b: GraphBuilder) -> int:
        x, bias = b.input(tensor(*shape, dtype=dtype)), b.input(tensor(shape[-1], dtype=dtype))
        return b.op("relu", b.op("add", x, bias))

    return graph(build, *symbols(shape))


def unary(op: str, *shape: int | str, dtype: DType = F32, **attributes: object) -> Graph:
    """One op on one input."""
    return graph(
        lambda b: b.op(op, b.input(tensor(*shape, dtype=dtype)), **attributes),
        *symbols(shape),
    )


def binary(op: str, *shape: int, dtype: DType = F32, row: bool = False) -> Graph:
    """One op on two inputs, the second positive and no zero, or one row of it."""

    def build(b: GraphBuilder) -> int:
        x = b.input(tensor(*shape, dtype=dtype))
        other = tensor(*(shape[-1:] if row else shape), dtype=dtype)
        return b.op(op, x, b.input(other, domain=ValueDomain(low=1)))

    return graph(build)


def concat(*shapes: tuple[int | str, ...], dim: int, dtype: DType = F32) -> Graph:
    """|concat|."""

    def build(b: GraphBuilder) -> int:
        return b.op(
            "abs", b.op("concat", *(b.input(tensor(*s, dtype=dtype)) for s in shapes), dim=dim)
        )

    return graph(build, *symbols(*shapes))


def layer_norm(*shape: int | str, dtype: DType = F32) -> Graph:
    def build(b: GraphBuilder) -> int:
        x = b.input(tensor(*shape, dtype=dtype))
        w, c = b.input(tensor(shape[-1], dtype=dtype)), b.input(tensor(shape[-1], dtype=dtype))
        return b.op("layer_norm", x, w, c, axes=1, eps=1e-5, weight=True, bias=True)

    return graph(build, *symbols(shape))


def transposed(*shape: int | str) -> Graph:
    """|xᵀ|."""
    return graph(
        lambda b: b.op("abs", b.op("permute", b.input(tensor(*shape)), dims=(1, 0))),
        *symbols(shape),
    )


def linear(m: int | str, k: int, n: int | str, dtype: DType = F16, after: str = "") -> Graph:
    """x @ wᵀ, then a bias, an op or both: "bias_relu"."""

    def build(b: GraphBuilder) -> int:
        x, w = b.input(tensor(m, k, dtype=dtype)), b.input(tensor(n, k, dtype=dtype))
        made = b.op("linear", x, w)
        if after.startswith("bias"):
            made = b.op("add", made, b.input(tensor(n, dtype=dtype)))
        op = after.removeprefix("bias").removeprefix("_")
        if op == "gelu":
            return b.op(op, made, approximate="none")
        return b.op(op, made) if op else made

    return graph(build, *symbols((m, n)))


def linear_of_heads(batch: int, heads: int, rows: int, each: int, n: int) -> Graph:
    """What attention's heads give, side by side in a row: x @ wᵀ + b, summed over two axes of x."""

    def build(b: GraphBuilder) -> int:
        x = b.op("permute", b.input(tensor(batch, heads, rows, each, dtype=F16)), dims=(0, 2, 1, 3))
        joined = b.op("reshape", x, shape=(batch, rows, heads * each))
        made = b.op("linear", joined, b.input(tensor(n, heads * each, dtype=F16)))
        return b.op("add", made, b.input(tensor(n, dtype=F16)))

    return graph(build)


def matmul(*shapes: tuple[int | str, ...], dtype: DType = F16) -> Graph:
    return graph(
        lambda b: b.op("matmul", *(b.input(tensor(*s, dtype=dtype)) for s in shapes)),
        *symbols(*shapes),
    )


def norm_relu_matmul(m: int | str, k: int, n: int) -> Graph:
    def build(b: GraphBuilder) -> int:
        x, g, c = (
            b.input(tensor(m, k, dtype=F16)),
            b.input(tensor(k, dtype=F16)),
            b.input(tensor(k, dtype=F16)),
        )
        normal = b.op("layer_norm", x, g, c, axes=1, eps=1e-5, weight=True, bias=True)
        return b.op("matmul", b.op("relu", normal), b.input(tensor(k, n, dtype=F16)))

    return graph(build, *symbols((m,)))


def softmax_of_means(a: int, b: int, c: int, d: int) -> Graph:
    """Softmax over axis 2 of the means over axis 3 of x transposed: phases that share a tensor."""

    def build(builder: GraphBuilder) -> int:
        x = builder.op("permute", builder.input(tensor(a, c, d, b)), dims=(0, 3, 1, 2))
        means = builder.op("mean", x, dims=(3,), keepdim=False)
        return builder.op("softmax", means, dim=2)

    return graph(build)


def sum_beside(rows: int, cols: int, more: int) -> Graph:
    """A row's sum beside the sigmoids of another row."""

    def build(b: GraphBuilder) -> int:
        x, y = b.input(tensor(rows, cols)), b.input(tensor(rows, more))
        total = b.op("sum", x, dims=(1,), keepdim=True)
        return b.op("concat", total, b.op("sigmoid", y), dim=1)

    return graph(build)


def empty_beside(rows: int, cols: int) -> Graph:
    """Two results, one of them without an element: along an axis that stays an axis."""
    b = GraphBuilder()
    x, y, z = b.input(tensor(rows, cols)), b.input(tensor(rows, 0, 2)), b.input(tensor(rows, 1))
    b.output(b.op("abs", x))
    b.output(b.op("add", b.op("permute", y, dims=(1, 0, 2)), z))
    return b.build()


def every(*shape: int, step: int, pad: int = 0, dtype: DType = F32) -> Graph:
    """|x[..., 1::step]|, x with zeros before and after its last axis."""

    def build(b: GraphBuilder) -> int:
        x = b.input(tensor(*shape, dtype=dtype))
        zeros = (0,) * (len(shape) - 1)
        if pad:
            x = b.op("pad", x, low=(*zeros, pad), high=(*zeros, pad), value=0.0)
        last = len(shape) - 1
        picked = b.op("slice", x, dim=last, start=1, stop=shape[-1] + 2 * pad, step=step)
        return b.op("abs", picked)

    return graph(build)


def convolution(
    n: int, c: int, out: int, side: int, kernel: int, stride: int = 1, after: str = ""
) -> Graph:
    """A convolution of images with channels first, padded to keep the size, then an op."""

    def build(b: GraphBuilder) -> int:
        x = b.input(tensor(n, c, side, side, dtype=F16))
        w = b.input(tensor(out, c, kernel, kernel, dtype=F16))
        made = b.op(
            "convolution", x, w, stride=(stride, stride), padding=(kernel // 2, kernel // 2),
            dilation=(1, 1), groups=1,
        )  # fmt: skip
        return b.op(after, made) if after else made

    return graph(build)


def pooled_product(n: int, c: int, out: int, side: int, dtype: DType = F16) -> Graph:
    """A norm of channels, ReLU and max pooling in front of a 1 x 1 convolution."""

    def build(b: GraphBuilder) -> int:
        x, w = b.input(tensor(n, c, side, side, dtype=dtype)), tensor(out, c, 1, 1, dtype=dtype)
        factors = (b.input(tensor(c, 1, 1, dtype=dtype)) for _ in range(2))
        normed = b.op("relu", b.op("add", b.op("mul", x, next(factors)), next(factors)))
        pooled = b.op(
            "max_pool", normed, kernel=(3, 3), stride=(2, 2), low=(1, 1), high=(1, 1),
            dilation=(1, 1),
        )  # fmt: skip
        return b.op(
            "convolution", pooled, b.input(w), stride=(1, 1), padding=(0, 0), dilation=(1, 1),
            groups=1,
        )  # fmt: skip

    return graph(build)


def halves(rows: int | str, cols: int) -> Graph:
    """The two halves of each row, added."""

    def build(b: GraphBuilder) -> int:
        x, half = b.input(tensor(rows, cols)), cols // 2
        parts = [b.op("slice", x, dim=1, start=at, stop=at + half, step=1) for at in (0, half)]
        return b.op("add", *parts)

    return graph(build, *symbols((rows,)))


def rows_of(rows: int, cols: int | str, wanted: int | str, dtype: DType = DType.I64) -> Graph:
    """Rows of a table added to other rows."""

    def build(b: GraphBuilder) -> int:
        table = b.input(tensor(rows, cols))
        ids = b.input(tensor(wanted, dtype=dtype), domain=ValueDomain(low=0, high=rows - 1))
        return b.op("add", b.op("take", table, ids, dim=0), b.input(tensor(wanted, cols)))

    return graph(build, *symbols((wanted, cols)))


def gathered(rows: int, cols: int, wanted: int, dtype: DType = DType.I64) -> Graph:
    """Elements of each row, each at a position of its own."""

    def build(b: GraphBuilder) -> int:
        x = b.input(tensor(rows, cols))
        ids = b.input(tensor(rows, wanted, dtype=dtype), domain=ValueDomain(low=0, high=cols - 1))
        return b.op("abs", b.op("gather", x, ids, dim=1))

    return graph(build)


def moved_by_positions() -> Graph:
    """Elements and rows of bytes at positions, in two phases that use one part of the buffer."""

    def build(b: GraphBuilder) -> int:
        small = ValueDomain(low=0, high=1)
        x = b.input(tensor(2, 33, 4, dtype=DType.U8))
        elements = b.input(tensor(7, 18, 1, dtype=DType.I32), domain=small)
        rows = b.input(tensor(2, dtype=DType.I64), domain=small)
        b.output(b.op("gather", x, elements, dim=0))
        b.output(b.op("take", x, rows, dim=0))
        return b.op("cast", x, dtype=DType.U8)

    return graph(build)


def all_alive(values: int, last: str) -> Graph:
    """`values` products of one another, all kept until they are divided, the last one first."""

    def build(b: GraphBuilder) -> int:
        x, product = b.input(tensor(300)), b.input(tensor(300))
        made = []
        for _ in range(values):
            product = b.op("mul", product, x)
            made.append(product)
        quotient = b.op(last, product)
        for value in made:
            quotient = b.op("div", value, quotient)
        return quotient

    return graph(build)
