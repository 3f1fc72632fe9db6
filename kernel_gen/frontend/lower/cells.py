"""One step of recurrent layers: two linear layers and what gates their sum.

The order of gates is torch's: input, forget, cell, output; reset, update, new.
"""

from __future__ import annotations

from functools import partial

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, extent, lowers


def _linear(c: Lowering, a: Args, value: Val, side: str) -> Val:
    """`value` by the weights of inputs (`ih`) or of the state (`hh`)."""
    bias = a[f"b_{side}"]
    if value.rank != 2 or not value.dtype.is_float:
        raise NotLowered(f"{c.name} of {value.dtype}, rank {value.rank}", decompose=False)
    return c.op("linear", value, a[f"w_{side}"], *(() if bias is None else (bias,)))


def _gates(c: Lowering, value: Val, count: int) -> list[Val]:
    width = extent(c, value, 1) // count
    return [c.slice(value, 1, k * width, (k + 1) * width) for k in range(count)]


@lowers("lstm_cell")
def lstm_cell(c: Lowering, a: Args) -> Result:
    hidden, cell = a["hx"]
    total = c.op("add", _linear(c, a, hidden, "hh"), _linear(c, a, a["input"], "ih"))
    enter, keep, new, leave = _gates(c, total, 4)
    entering = c.op("mul", c.op("sigmoid", enter), c.op("tanh", new))
    state = c.op("add", c.op("mul", c.op("sigmoid", keep), cell), entering)
    return [c.op("mul", c.op("sigmoid", leave), c.op("tanh", state)), state]


@lowers("gru_cell")
def gru_cell(c: Lowering, a: Args) -> Result:
    hidden: Val = a["hx"]
    ours = _gates(c, _linear(c, a, hidden, "hh"), 3)
    given = _gates(c, _linear(c, a, a["input"], "ih"), 3)
    reset = c.op("sigmoid", c.op("add", ours[0], given[0]))
    update = c.op("sigmoid", c.op("add", ours[1], given[1]))
    new = c.op("tanh", c.op("add", given[2], c.op("mul", ours[2], reset)))
    return c.op("add", c.op("mul", c.op("sub", hidden, new), update), new)


def _plain_cell(function: str, c: Lowering, a: Args) -> Result:
    total = c.op("add", _linear(c, a, a["hx"], "hh"), _linear(c, a, a["input"], "ih"))
    return c.op(function, total)


lowers("rnn_tanh_cell")(partial(_plain_cell, "tanh"))
lowers("rnn_relu_cell")(partial(_plain_cell, "relu"))
