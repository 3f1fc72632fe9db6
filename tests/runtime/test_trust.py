"""Keys: made once, readable by their owner only, trusted only where put by the user."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernel_gen.errors import InvalidInput, UntrustedBundle
from kernel_gen.runtime.signer import Signer
from kernel_gen.runtime.trust import PublicKey, Trust, fingerprint


def test_own_key_is_private_and_enrolled(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted")
    signer = Signer.of_user(tmp_path / "config", trust)
    assert stat.S_IMODE((tmp_path / "config" / "signing-key.pem").stat().st_mode) == 0o600
    known = trust.keys()
    assert [key.fingerprint for key in known] == [signer.public.fingerprint]
    assert Signer.of_user(tmp_path / "config", trust).public.raw == signer.public.raw


def test_racing_processes_get_one_key(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted")
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: Signer.of_user(tmp_path / "c", trust).public, range(32)))
    assert len({key.raw for key in keys}) == 1
    assert sorted(os.listdir(tmp_path / "c")) == ["signing-key.pem"]
    assert len(os.listdir(tmp_path / "trusted")) == 1


def test_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted")
    Signer.of_user(tmp_path, trust)
    (tmp_path / "signing-key.pem").chmod(0o644)
    with pytest.raises(UntrustedBundle, match="can be read by other users"):
        Signer.of_user(tmp_path, trust)


@pytest.mark.parametrize("place", [".", "key"])
def test_trust_that_others_can_write_is_refused(tmp_path: Path, place: str) -> None:
    trust = Trust(tmp_path / "trusted")
    key = trust.add("a server", Signer.generate().public.raw)
    name = f"{key.fingerprint}.pub" if place == "key" else "."
    (trust.folder / name).chmod(0o777)
    with pytest.raises(UntrustedBundle, match="can be written by other users"):
        trust.find(key.fingerprint)


def test_key_under_a_wrong_name_is_refused(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted")
    good, bad = (Signer.generate().public for _ in range(2))
    trust.add("good", good.raw)
    os.rename(trust.folder / f"{good.fingerprint}.pub", trust.folder / f"{bad.fingerprint}.pub")
    with pytest.raises(UntrustedBundle, match="another key"):
        trust.find(bad.fingerprint)


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64, "0" * 63])
def test_fingerprints_are_no_paths(tmp_path: Path, name: str) -> None:
    trust = Trust(tmp_path)
    (tmp_path / "A.pub").write_text("x")
    assert trust.find(name) is None


def test_key_text_round_trips() -> None:
    key = PublicKey(bytes(range(32)), "http://127.0.0.1:8000")
    assert PublicKey.parse(key.text) == key
    assert key.fingerprint == fingerprint(key.raw)
    assert "\n" not in PublicKey(key.raw, "two\nlines").text


@pytest.mark.parametrize("text", ["", "rsa AAAA", "ed25519 ***", "ed25519 QUJD"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        PublicKey.parse(text)


def test_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAF_TRUST", str(tmp_path / "here"))
    assert Trust.of_user().folder == tmp_path / "here"
    monkeypatch.delenv("GAF_TRUST")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert Trust.of_user().folder == tmp_path / "config" / "graph-autofusion" / "trusted"
