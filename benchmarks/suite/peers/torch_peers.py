"""PyTorch itself: eager, and Inductor by default and by max-autotune, both with freezing."""

from __future__ import annotations

import torch

from benchmarks.suite.peers.work import Built, Work, call_in_place


def eager(work: Work) -> Built:
    return call_in_place(work, work.model)


def inductor(work: Work) -> Built:
    return _compiled(work, None)


def inductor_max(work: Work) -> Built:
    return _compiled(work, "max-autotune-no-cudagraphs")


def _compiled(work: Work, mode: str | None) -> Built:
    import torch._inductor.config as config

    config.freezing = True
    return call_in_place(work, torch.compile(work.model, mode=mode))
