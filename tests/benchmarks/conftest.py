"""What Inductor has compiled is kept, as kernels of our own are."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def kept_inductor(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder would be one of the system's temporary files."""
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)
    if cache is not None:
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache.mkdir("inductor")))
