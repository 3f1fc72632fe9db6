"""The `gaf` command. One module per habit; `app` puts them together. What takes long to load
(torch, the server, the code generators) is imported by the command that runs it.

Exit codes: 0 done; 1 the command ran and the answer is no (a miss, a failed job, a failed check);
2 wrong usage or input; 3 something is not available (compiler, service, package); 130 Ctrl-C; 143
SIGTERM.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the `gaf` script. Ctrl-C while it loads ends it as it does later."""
    try:
        from graph_autofusion.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
