"""Ops that are left to torch on purpose, each with its reason."""

from __future__ import annotations

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, lowers

_REASONS = {
    "lstm gru rnn_tanh rnn_relu": (
        "is one call of the library for all steps of all layers; cells such as nn.LSTMCell are"
        " kernels"
    ),
    "index_add index_copy masked_scatter": (
        "adds or writes at positions that depend on values and may repeat"
    ),
    "grid_sampler grid_sampler_2d grid_sampler_3d": "reads images at positions in between",
    "sort median nanmedian kthvalue mode": "needs its rows sorted",
}


def _leave(names: str, reason: str) -> None:
    @lowers(names)
    def refuse(c: Lowering, a: Args) -> Result:
        raise NotLowered(f"{c.name} {reason}", decompose=False)


for _names, _reason in _REASONS.items():
    _leave(_names, _reason)
