"""Where stores and bundle caches lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph_autofusion.paths import absolute_store, bundle_cache_root, default_store


def test_a_relative_store_means_the_same_in_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = absolute_store("sqlite:///a/b.sqlite")
    assert url == f"sqlite:///{tmp_path}/a/b.sqlite"
    assert absolute_store(url) == url
    for other in ("postgresql://host/name", "sqlite://", "sqlite:///:memory:"):
        assert absolute_store(other) == other


def test_bundles_lie_beside_the_store(tmp_path: Path) -> None:
    assert bundle_cache_root(f"sqlite:///{tmp_path}/s.sqlite") == tmp_path / "bundles"
    beside_default = Path(default_store().removeprefix("sqlite:///")).parent / "bundles"
    assert bundle_cache_root(None) == bundle_cache_root("postgresql://h/n") == beside_default
