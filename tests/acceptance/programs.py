"""Small programs on which fusing compilers have gone wrong, by the kind of fault.

Each entry of `PROGRAMS` is a function with its inputs; the right answer is eager's. Sizes are such
that no vector, block or row count divides them; `sized` gives the neighbours of a size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Program = tuple[Callable[..., Any], tuple[Tensor, ...]]

NAN, INF = float("nan"), float("inf")
F64, BF16, F16, I32, I8 = torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int8
_rng = torch.Generator().manual_seed(41)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=_rng).to(dtype)


def integers(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(low, high, shape, generator=_rng).to(dtype)


def sprinkled(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal values with NaN, infinities and zeros of both signs among them."""
    values, picks = normal(*shape), torch.rand(*shape, generator=_rng)
    for low, special in ((0.94, NAN), (0.95, INF), (0.96, -INF), (0.97, 0.0), (0.98, -0.0)):
        values = torch.where((picks > low) & (picks <= low + 0.01), special, values)
    return values.to(dtype)


# Layouts: values and positions are logical, whatever the memory looks like.


def position_of_channel_mean(x: Tensor) -> Any:
    means = x.mean(1)
    return means.argmax(), means.flatten(1).argmax(-1)


def several_layouts(x: Tensor, y: Tensor, row: Tensor) -> Any:
    """A transposed, a strided and an expanded operand."""
    return (x.t() + y[::2, 1:]) * row.expand(9, -1)


def turned_difference(x: Tensor, y: Tensor) -> Any:
    return (x - y).transpose(1, 2).abs()


def sum_of_turned(x: Tensor) -> Any:
    return (x.transpose(0, 1) + 1).sum(-1), x.permute(2, 0, 1).amax(1)


def weight_inside_a_larger_one(x: Tensor, w: Tensor) -> Any:
    return (x @ w[1]).relu(), x[:, 3:] @ w[2, 3:, 1:]


def pooled_after_activation(x: Tensor) -> Any:
    return F.max_pool2d(x.relu(), 3, 2, 1), F.max_pool2d(x, 2) + 1, F.avg_pool2d(x * 2, 3, 1, 1)


def convolution_and_norm(x: Tensor, w: Tensor, m: Tensor, v: Tensor) -> Any:
    return F.batch_norm(F.conv2d(x, w, None, 2, 1), m, v.abs() + 0.5).relu()


def norm_of_a_batch(x: Tensor, m: Tensor, v: Tensor, w: Tensor) -> Any:
    """By its own statistics, which the running ones follow."""
    mean, var = m.clone(), v.abs()
    return F.batch_norm(x * 2 + 30, mean, var, w, m, True, 0.2).relu(), mean, var


def views_of_views(x: Tensor) -> Any:
    y = x.transpose(0, 1)[1:7].unflatten(0, (3, 2)).permute(2, 1, 0)
    return (y[:, :, ::2] + 1).flatten(1), x.flip(1)[:, ::2] * 2


# Arithmetic: NaN, infinities, wrapping, promotion, rounding.


def extremes_meet_nan(x: Tensor, y: Tensor) -> Any:
    return x.maximum(y), x.minimum(y), x.clamp(min=0.25), x.clamp(max=y), x.amax(-1), y.amin(0)


def softmax_meets_infinities(x: Tensor) -> Any:
    return x.softmax(-1), x.log_softmax(-1), x.exp().sum(-1)


def positions_meet_nan(x: Tensor) -> Any:
    return x.argmax(-1), x.argmin(-1), x.flatten().argmax()


def wraps_before_widening(x: Tensor, y: Tensor) -> Any:
    return (x + x).long(), (x * y).long() - 1, x.abs().double(), -y, (x + y).sum(-1)


def divides_integers(x: Tensor, y: Tensor) -> Any:
    return x // y, x % y, x.fmod(y), torch.div(x, y, rounding_mode="trunc"), x / y


def number_beside_tensor(x: Tensor, wide: Tensor, count: Tensor) -> Any:
    """Operands without dimensions take part in no promotion inside their kind."""
    return x + wide, x * 0.1, count + wide, count * 2.5, x * count


def quantised(x: Tensor, scale: Tensor) -> Any:
    q = (x / scale).round().clamp(-128, 127).to(torch.int8)
    return q, (q.float() + 3) * scale, q.to(torch.int32).sum(-1)


def every_conversion(x: Tensor) -> Any:
    small = x.clamp(-100, 100)
    return x.to(BF16), x.half().float(), small.int(), small.to(I8), x.bool(), x.double() * 2


def choices(x: Tensor, keep: Tensor) -> Any:
    nested = torch.where(x > 1, x * 2, torch.where(x < -1, -x, 1.0))
    return x.masked_fill(keep, -INF).softmax(-1), nested, torch.where(keep, 1, x)


def powers(x: Tensor, y: Tensor) -> Any:
    return x**2, x**-1, x.abs() ** 0.5, x**y, 2**x, x % y, torch.atan2(x, y), torch.copysign(x, y)


# Reductions: neutral elements, several axes, long ones, near-patterns.


def reduces_nothing(x: Tensor) -> Any:
    return x.sum(1), x.prod(1), x.sum(), (x + 1).softmax(0)


def other_axes_each(x: Tensor) -> Any:
    return x.amax((0, 2)), x.sum((1, 3)), x.mean((0, 1, 2, 3))


def scaled_along_rows(x: Tensor, scale: Tensor) -> Any:
    """Nearly a layer norm: the scale runs along the rows."""
    centred = x - x.mean(-1, keepdim=True)
    return centred * (x.var(-1, keepdim=True, correction=0) + 1e-5).rsqrt() * scale


def softmax_in_steps(x: Tensor) -> Any:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def norm_of_a_sum(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> Any:
    total = x + y
    return F.layer_norm(total, w.shape, w, b), total


def norm_over_two_axes(x: Tensor, w: Tensor) -> Any:
    return F.rms_norm(x, w.shape, w, 1e-6) + 1, F.layer_norm(x, w.shape).relu()


def spread_of_far_values(x: Tensor) -> Any:
    """One pass over squares would cancel."""
    return torch.var_mean(x + 1000, -1, correction=0)


def sum_of_products(x: Tensor, y: Tensor) -> Any:
    return (x * y).sum(), (x * y).sum(0), (x > y).sum()


# Joins, reads at positions, repeated and cut operands.


def joined_with_itself(x: Tensor) -> Any:
    twice = torch.cat([x, x])
    return twice, twice * twice


def joined_tails(x: Tensor, y: Tensor, z: Tensor) -> Any:
    return torch.cat([x.relu(), y * 2, z], -1)


def joined_with_a_sum(x: Tensor, y: Tensor) -> Any:
    return torch.cat([x.sum(-1, keepdim=True), y.sigmoid()], -1)


def turned_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Any:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def read_at(x: Tensor, at: Tensor, y: Tensor) -> Any:
    return x.gather(1, at) + y, x[at[:, 0]].mean(-1), F.embedding(at, x).amax(1)


def padded_and_rolled(x: Tensor) -> Any:
    return F.pad(x, (1, 2, 0, 3), value=0.5) * 2, x.roll((1, -2), (0, 1)) + 1, x.repeat(2, 3) - 1


def outer_broadcasts(a: Tensor, b: Tensor, c: Tensor) -> Any:
    return a * b + c, (a + c).sum(1), (b - c).amax((0, 2))


# Products and what stands around them.


def used_beside_its_product(x: Tensor, w: Tensor) -> Any:
    return F.linear(x, w) + x


def product_of_turned(x: Tensor, y: Tensor) -> Any:
    return F.gelu(x.t() @ y.t() + 1)


def patches(x: Tensor, w: Tensor) -> Any:
    """Embeds squares of an image: the sum runs over three axes of memory."""
    squares = x.unflatten(3, (-1, 4)).unflatten(2, (-1, 4)).permute(0, 2, 4, 1, 3, 5)
    return squares.flatten(3).flatten(1, 2) @ w + 1


def small_attention(q: Tensor, k: Tensor, v: Tensor) -> Any:
    scores = q @ k.transpose(-1, -2) * 0.3
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~allowed, -INF).softmax(-1) @ v


def shared_heads(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Any:
    """Grouped-query attention of merged heads, turned back, and a position-dependent penalty."""
    heads = q.unflatten(-1, (4, -1)).transpose(1, 2)
    keys, values = (x.unflatten(-1, (2, -1)).transpose(1, 2) for x in (k, v))
    distance = torch.arange(k.shape[1]) - torch.arange(q.shape[1])[:, None]
    made = F.scaled_dot_product_attention(
        heads, keys, values, attn_mask=(slopes * distance).to(q.dtype), enable_gqa=True
    )
    return F.silu(made.transpose(1, 2).flatten(2))


def gated(x: Tensor, w: Tensor, v: Tensor) -> Any:
    left, right = F.linear(F.rms_norm(x, x.shape[-1:]), w).chunk(2, -1)
    return x + F.linear(F.silu(left) * right, v)


# Writes.


def writes_between_reads(x: Tensor) -> Any:
    own = x.clone()
    later = own + 1
    own.copy_(later * 2)
    own[:, 1:3] = 0
    own[0] += 5
    return own * later / (own.abs() + 1)


def narrow(dtype: torch.dtype) -> dict[str, Program]:
    """Programs over one narrow (or wide) float type."""
    w = normal(67, dtype=dtype)
    return {
        f"{dtype} norm": (norm_of_a_sum, (normal(5, 67, dtype=dtype),) * 2 + (w, w)),
        f"{dtype} softmax": (softmax_meets_infinities, (sprinkled(5, 67, dtype=dtype),)),
        f"{dtype} extremes": (
            extremes_meet_nan,
            (sprinkled(5, 67, dtype=dtype), sprinkled(5, 67, dtype=dtype)),
        ),
        f"{dtype} product": (
            product_of_turned,
            (normal(33, 17, dtype=dtype) * 0.2, normal(19, 33, dtype=dtype) * 0.2),
        ),
        f"{dtype} number": (
            number_beside_tensor,
            (normal(9, 7, dtype=dtype), torch.tensor(-0.1, dtype=F64), torch.tensor(3)),
        ),
    }


def sized(width: int) -> dict[str, Program]:
    """Programs whose innermost extent is `width`."""
    w = normal(width)
    return {
        f"joined tails {width}": (
            joined_tails,
            (normal(7, width), normal(7, width), normal(7, width + 2)),
        ),
        f"norm of a sum {width}": (norm_of_a_sum, (normal(7, width), normal(7, width), w, w)),
        f"turned difference {width}": (
            turned_difference,
            (normal(3, width, 18), normal(3, width, 18)),
        ),
        f"softmax in steps {width}": (softmax_in_steps, (normal(6, width),)),
    }


_MOST = torch.iinfo(I32).max
_PLAIN: dict[str, Program] = {
    "position of channel mean": (
        position_of_channel_mean,
        (normal(3, 5, 7, 6).to(memory_format=torch.channels_last),),
    ),
    "several layouts": (several_layouts, (normal(7, 9), normal(18, 8), normal(1, 7))),
    "sum of turned": (sum_of_turned, (normal(11, 13, 7),)),
    "weight inside a larger one": (
        weight_inside_a_larger_one,
        (normal(5, 19, dtype=BF16), normal(3, 19, 33, dtype=BF16)),
    ),
    "pooled after activation": (pooled_after_activation, (sprinkled(2, 3, 7, 9),)),
    "convolution and norm": (
        convolution_and_norm,
        (normal(2, 5, 7, 9), normal(11, 5, 3, 3), normal(11), normal(11)),
    ),
    "norm of a batch of images": (
        norm_of_a_batch,
        (normal(3, 6, 5, 7), normal(6), normal(6), normal(6)),
    ),
    "norm of a batch of rows": (norm_of_a_batch, (normal(37, 19), *(normal(19) for _ in range(3)))),
    "views of views": (views_of_views, (normal(5, 9),)),
    "extremes meet nan": (extremes_meet_nan, (sprinkled(9, 70), sprinkled(9, 70))),
    "softmax meets infinities": (
        softmax_meets_infinities,
        (torch.cat([sprinkled(4, 37), torch.full((1, 37), -INF)]),),
    ),
    "positions meet nan": (positions_meet_nan, (sprinkled(9, 70),)),
    "positions of equals": (positions_meet_nan, (integers(0, 3, 9, 70, dtype=I8),)),
    "wraps before widening": (
        wraps_before_widening,
        (
            integers(-_MOST - 1, _MOST, 5, 21, dtype=I32),
            integers(-_MOST - 1, _MOST, 5, 21, dtype=I32),
        ),
    ),
    "divides integers": (
        divides_integers,
        (integers(-128, 128, 3, 35, dtype=I8), integers(1, 128, 3, 35, dtype=I8)),
    ),
    "quantised": (quantised, (normal(9, 70) * 9, torch.tensor(0.1))),
    "every conversion": (every_conversion, (normal(3, 41) * 40,)),
    "choices": (choices, (normal(9, 37), integers(0, 2, 37).bool())),
    "powers": (powers, (sprinkled(3, 41), normal(3, 41))),
    "reduces nothing": (reduces_nothing, (torch.empty(3, 0),)),
    "other axes each": (other_axes_each, (normal(3, 7, 5, 33),)),
    "scaled along rows": (scaled_along_rows, (normal(9, 33), normal(9, 1))),
    "softmax of long rows": (softmax_in_steps, (normal(2, 5003),)),
    "norm over two axes": (norm_over_two_axes, (normal(3, 5, 7), normal(5, 7))),
    "spread of far values": (spread_of_far_values, (normal(5, 1001),)),
    "sum of products": (sum_of_products, (normal(70, 33), normal(70, 33))),
    "joined with itself": (joined_with_itself, (normal(3, 5),)),
    "joined with a sum": (joined_with_a_sum, (normal(9, 40), normal(9, 7))),
    "turned pairs": (turned_pairs, (normal(2, 3, 7, 10), normal(7, 10), normal(7, 10))),
    "read at": (read_at, (normal(20, 33), integers(0, 20, 9, 13), normal(9, 13))),
    "padded and rolled": (padded_and_rolled, (normal(5, 7),)),
    "outer broadcasts": (outer_broadcasts, (normal(4, 1, 7), normal(1, 5, 1), normal(4, 5, 1))),
    "used beside its product": (used_beside_its_product, (normal(7, 33), normal(33, 33))),
    "small attention": (
        small_attention,
        (normal(2, 3, 9, 8), normal(2, 3, 9, 8), normal(2, 3, 9, 8)),
    ),
    "shared heads": (
        shared_heads,
        (normal(2, 19, 48), normal(2, 35, 24), normal(2, 35, 24), normal(4, 1, 1)),
    ),
    "patches": (patches, (normal(2, 3, 8, 12), normal(48, 17))),
    "gated": (gated, (normal(5, 33), normal(34, 33), normal(33, 17))),
    "writes between reads": (writes_between_reads, (normal(5, 7),)),
}

PROGRAMS: dict[str, Program] = {
    **_PLAIN,
    **{name: case for width in (1, 15, 16, 17, 33) for name, case in sized(width).items()},
    **{name: case for dtype in (BF16, F16, F64) for name, case in narrow(dtype).items()},
}
