"""Whatever a caller passes for a path, a service, an id or a flag: a typed error, or it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import graph_autofusion as gaf
from graph_autofusion.arguments import checked_url

NO_PATHS: list[Any] = [None, 3, 2.5, [], b"bytes", "\0", "x" * 5000, torch.ones(2)]
NO_URLS: list[Any] = [
    *("", "x", "ftp://x", "http://", "https://:80", "http://[::1", "http://x:99999", "http://x:y"),
    *("http://a b", "http://x\n", "//host", None, 3, b"http://x", Path("http://x")),
]


@pytest.mark.parametrize("value", NO_PATHS, ids=lambda value: repr(value)[:12])
def test_paths(value: Any) -> None:
    with gaf.Client("http://127.0.0.1:9") as client:
        for use in (
            gaf.load,
            client.import_,
            lambda path: client.export("a", path),
            lambda path: gaf.optimize(path) if isinstance(path, str) else gaf.load(path),
            lambda path: gaf.capture(path) if isinstance(path, str) else gaf.load(path),
        ):
            with pytest.raises(gaf.InvalidInput):
                use(value)


@pytest.mark.parametrize("value", NO_URLS, ids=lambda value: repr(value)[:16])
def test_services(value: Any) -> None:
    with pytest.raises(gaf.InvalidInput, match="expected http://HOST:PORT"):
        gaf.Client(value)
    if value:
        with pytest.raises(gaf.InvalidInput, match="expected http://HOST:PORT"):
            gaf.optimize(lambda x: x, service=value)


def test_good_services_lose_their_last_slash() -> None:
    assert checked_url("service", "https://host/base/") == "https://host/base"
    assert checked_url("service", "http://[::1]:8400") == "http://[::1]:8400"


@pytest.mark.parametrize("value", [None, 3, "", "../x", "a/b", "\0", "%2e", b"x", []])
def test_ids(value: Any) -> None:
    with gaf.Client("http://127.0.0.1:9") as client:
        for use in (client.job, client.plan, client.bundle, lambda i: client.revoke(i, "why")):
            with pytest.raises(gaf.InvalidInput, match="not an id"):
                use(value)
        with pytest.raises(gaf.InvalidInput, match="not an id"):
            client.export(value, "folder")


def test_models_and_flags() -> None:
    wrong: list[dict[str, Any]] = [{"strict": "yes"}, {"strict": 1}, {"training": "x"}]
    wrong += [{"training": None}, {"budget": 10**400}]
    for arguments in wrong:
        with pytest.raises(gaf.InvalidInput, match="expected"):
            gaf.optimize(lambda x: x, **arguments)
    for kind in (torch.nn.Linear, int):
        with pytest.raises(gaf.InvalidInput, match="is a class: pass a model made of it"):
            gaf.optimize(kind)


def test_a_folder_that_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with gaf.Client("http://127.0.0.1:9") as client:
        for folder in (tmp_path, tmp_path / "file", tmp_path / "none"):
            with pytest.raises(gaf.InvalidInput, match="bundle"):
                client.import_(folder)
            with pytest.raises(gaf.InvalidInput):
                gaf.load(folder)
    with pytest.raises(gaf.InvalidInput, match="expected the module"):
        gaf.load(tmp_path, 3)  # type: ignore[arg-type]
