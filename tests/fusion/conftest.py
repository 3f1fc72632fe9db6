"""Puts the fusion tests' own helpers on the path (tests are no package)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
