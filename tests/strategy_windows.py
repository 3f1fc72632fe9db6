"""Steps of random graphs over windows: poolings, convolutions turned round, what goes their way
back, and images of another size."""

from __future__ import annotations

import math
from collections.abc import Callable

from kernel_gen.ir.dtype import DType
from tests.strategy_draft import Draft

Settings = dict[str, list[int]]


def _image(draft: Draft, *, exact: bool = False) -> int | None:
    """A float value with something to slide a window over."""
    return draft.pick(
        lambda v: (
            draft.type(v).dtype.is_float
            and (draft.info(v).exact or not exact)
            and 2 <= len(draft.shape(v)) <= 4
            and 0 not in draft.shape(v)
            and draft.shape(v)[-1] > 1
        )
    )


def _windows(draft: Draft, shape: tuple[int, ...]) -> Settings:
    """Windows over the last dimensions, half in the padding at most."""
    spatial = draft.integer(1, min(len(shape) - 1, 2))
    found: Settings = {"kernel": [], "stride": [], "low": [], "high": []}
    for extent in shape[-spatial:]:
        kernel = draft.integer(1, min(extent, 3))
        around = draft.integer(0, kernel // 2)
        found["kernel"].append(kernel)
        found["stride"].append(draft.integer(1, 3))
        found["low"].append(around)
        found["high"].append(around)
    return found


def _to_the_end(settings: Settings, shape: tuple[int, ...]) -> None:
    """The padding behind that torch's `ceil_mode` takes: of a window that begins inside."""
    count = len(settings["kernel"])
    for d, extent in enumerate(shape[-count:]):
        kernel, stride, low = (settings[key][d] for key in ("kernel", "stride", "low"))
        reach = settings["dilation"][d] * (kernel - 1) + 1
        last = -(-(extent + 2 * low - reach) // stride)
        last -= last * stride >= extent + low
        settings["high"][d] = max(low, last * stride + reach - extent - low)


def _of_maximum(draft: Draft, shape: tuple[int, ...]) -> Settings:
    settings = _windows(draft, shape)
    settings["dilation"] = [
        draft.integer(1, 2) if kernel > 1 and (kernel - 1) * 2 < extent else 1
        for kernel, extent in zip(
            settings["kernel"], shape[-len(settings["kernel"]) :], strict=True
        )
    ]
    if draft.chance(3):
        _to_the_end(settings, shape)
    return settings


def pool(draft: Draft) -> None:
    x = _image(draft)
    if x is None:
        return
    shape, bound = draft.shape(x), draft.info(x).bound
    if draft.chance(2):
        draft.op("max_pool", x, bound=bound, exact=True, **_of_maximum(draft, shape))
    else:
        draft.op("avg_pool", x, bound=bound, **_windows(draft, shape))


def pool_back(draft: Draft) -> None:
    """The gradient of a pooling; of a maximum's, with the places of its elements."""
    x = _image(draft, exact=True)
    if x is None:
        return
    dtype, shape = draft.type(x).dtype, draft.shape(x)
    mean = draft.chance(2)
    settings = _windows(draft, shape) if mean else _of_maximum(draft, shape)
    image = list(shape[-len(settings["kernel"]) :])
    places = draft.op("argmax_pool", x, **{"dilation": [1] * len(image), **settings})
    # Finite: torch spreads a mean's gradient by a product, where NaN and infinities spread too.
    gradient = draft.fresh_input(dtype, draft.shape(places), finite=True)
    bound = draft.info(gradient).bound * math.prod(settings["kernel"])
    if mean:
        draft.op("avg_pool_gradient", gradient, image=image, bound=bound, **settings)
    else:
        draft.op("max_pool_gradient", gradient, places, image=image, bound=bound, **settings)


def _convolved(draft: Draft) -> tuple[DType, int, int, tuple[int, ...]] | None:
    """A dtype, groups, channels of a group, and an image."""
    dtypes = [dtype for dtype in draft.dtypes if dtype.is_float]
    if not dtypes:
        return None
    spatial, groups = draft.integer(1, 2), draft.integer(1, 2)
    channels = draft.integer(1, 2) * (draft.one_of((1, 4, 9)) if draft.large else 1)
    extents = tuple(draft.integer(3, 11 if draft.large else 7) for _ in range(spatial))
    return draft.one_of(dtypes), groups, channels, extents


def conv_transpose(draft: Draft) -> None:
    found = _convolved(draft)
    if found is None:
        return
    dtype, groups, channels, extents = found
    made = draft.integer(1, 2) * (draft.one_of((1, 4, 8)) if draft.large else 1)
    settings: Settings = {"stride": [], "padding": [], "dilation": [], "output_padding": []}
    kernel = [draft.integer(1, 3) for _ in extents]
    for _ in extents:
        stride, dilation = draft.integer(1, 3), draft.integer(1, 2)
        settings["stride"].append(stride)
        settings["dilation"].append(dilation)
        settings["padding"].append(draft.integer(0, 1))
        settings["output_padding"].append(draft.integer(0, max(stride, dilation) - 1))
    shape = (draft.integer(1, 2), groups * channels, *extents)
    # Finite: fast algorithms spread NaN and infinities, which is allowed.
    x = draft.fresh_input(dtype, shape, finite=True)
    weight = draft.fresh_input(dtype, (groups * channels, made, *kernel), finite=True)
    bias = [draft.fresh_input(dtype, (groups * made,), finite=True)] if draft.chance(2) else []
    bound = 16.0 * channels * math.prod(kernel) + 4.0
    draft.op("conv_transpose", x, weight, *bias, groups=groups, bound=bound, **settings)


def weight_gradient(draft: Draft) -> None:
    found = _convolved(draft)
    if found is None:
        return
    dtype, groups, channels, extents = found
    settings: Settings = {"stride": [], "padding": [], "dilation": [], "kernel": []}
    out = []
    for extent in extents:
        kernel, stride, dilation = (draft.integer(1, n) for n in (2, 2, 2))
        padding = draft.integer(0, 1)
        for key, value in zip(settings, (stride, padding, dilation, kernel), strict=True):
            settings[key].append(value)
        out.append((extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)
    batch, made = draft.integer(1, 3), groups * draft.integer(1, 2)
    x = draft.fresh_input(dtype, (batch, groups * channels, *extents), finite=True)
    gradient = draft.fresh_input(dtype, (batch, made, *out), finite=True)
    bound = 16.0 * batch * math.prod(out)
    draft.op("conv_weight_gradient", x, gradient, groups=groups, bound=bound, **settings)


def resize(draft: Draft) -> None:
    """By linear interpolation of one or two axes or cubic of two."""
    x = _image(draft)
    if x is None:
        return
    shape = draft.shape(x)
    spatial = draft.integer(1, min(len(shape) - 1, 2))
    mode = draft.one_of(("linear", "cubic")) if spatial == 2 else "linear"
    align = draft.chance(2)
    sizes, scales = [], []
    for extent in shape[-spatial:]:
        scale = 0.0 if align else draft.one_of((0.0, 0.0, 0.5, 1.5, 2.0))
        size = int(extent * scale) if scale else draft.integer(1, 9)
        sizes.append(max(size, 1))
        scales.append(scale if size else 0.0)
    if math.prod(shape[:-spatial]) * math.prod(sizes) <= draft.max_elems:
        bound = draft.info(x).bound * (2.0 if mode == "cubic" else 1.0)
        draft.op("resize", x, sizes=sizes, scales=scales, mode=mode, align=align, bound=bound)


WINDOW_STEPS: dict[str, Callable[[Draft], None]] = {
    "pool": pool,
    "pool_back": pool_back,
    "conv_transpose": conv_transpose,
    "weight_gradient": weight_gradient,
    "resize": resize,
}
