"""Losses over classes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule


@rule("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def class_loss(call: Call) -> Tensor | list[Tensor]:
    value, labels, weight = call.tensor(0), call.tensor(1).to(torch.int64), call.optional(2)
    logs = value if call.op.startswith("Negative") else torch.log_softmax(value, 1)
    loss = F.nll_loss(
        logs,
        labels,
        weight,
        ignore_index=call.attr("ignore_index", -100),
        reduction=call.attr("reduction", b"mean").decode(),
    )
    return [loss, logs][: call.outputs] if call.outputs > 1 else loss
