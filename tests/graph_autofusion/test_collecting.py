"""Collections wait while a known plan is put in place, and go on afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from graph_autofusion.collecting import collecting_later


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_collections_wait_and_go_on_after_an_error_too() -> None:
    @collecting_later()
    def failing() -> None:
        assert not gc.isenabled()
        raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert gc.isenabled()


def test_a_program_that_collects_nothing_is_left_so() -> None:
    gc.disable()
    with collecting_later():
        pass
    assert not gc.isenabled()


def test_overlapping_uses_end_with_collections_on() -> None:
    first, second = collecting_later(), collecting_later()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.isenabled()
