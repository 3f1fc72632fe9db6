"""Long runs: `make soak` collects them, `make test` does not."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("GAF_SOAK") else ["test_*.py"]
