"""Folders of a test's own for everything that belongs to the user."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(home: Path) -> None:
    """No test here touches the real user's folders."""
