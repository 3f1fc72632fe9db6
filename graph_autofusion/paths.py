"""Where the user's store and bundle cache lie."""

from __future__ import annotations

from pathlib import Path

import platformdirs

_SQLITE = "sqlite:///"


def default_store() -> str:
    """SQLAlchemy URL of the user's own store, a SQLite file in the user's cache folder."""
    return _SQLITE + str(platformdirs.user_cache_path("graph-autofusion") / "store.sqlite")


def absolute_store(url: str) -> str:
    """`url`, with the path of a SQLite file made absolute: it means the same in every folder."""
    path = url.removeprefix(_SQLITE)
    if path == url or not path or path.startswith((":memory:", "file:")):
        return url
    return _SQLITE + str(Path(path).expanduser().absolute())


def bundle_cache_root(store: str | None) -> Path:
    """The bundle cache beside `store`; for a database server, in the user's cache folder."""
    url = store or default_store()
    if url.startswith(_SQLITE) and url != _SQLITE:
        return Path(url.removeprefix(_SQLITE)).expanduser().absolute().parent / "bundles"
    return platformdirs.user_cache_path("graph-autofusion") / "bundles"
