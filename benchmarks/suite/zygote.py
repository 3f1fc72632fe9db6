"""A process that has imported torch and forks measuring processes.

Each line on standard input is an order as JSON with the path of a Unix socket to connect to. The
malloc setting is that of this process's environment; the forks run on the first `--threads`
processors that it may use, so that every thread pool has the same size.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

from benchmarks.suite.reference import Effort
from benchmarks.suite.worker import Order, serve


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    _preload()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended forks leave no zombies
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the harness decides what ends when
    gc.freeze()
    for line in sys.stdin:
        if os.fork() == 0:
            _work(json.loads(line))


def _preload() -> None:
    """Imports that several contenders share and that start no threads."""
    warnings.simplefilter("ignore")
    import torch._dynamo  # noqa: F401
    import transformers  # noqa: F401 - the models import from it


def _work(line: dict[str, Any]) -> None:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        log = os.open(line["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        faulthandler.enable()
        effort = Effort(**line["effort"]) if line.get("effort") else None
        order = Order(**{**line["order"], "effort": effort})
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(line["socket"])
            serve(order, connection)
        status = 0
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        import traceback

        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(status)  # nothing of the parent's may run in a fork


def command(threads: int) -> list[str]:
    """How to start one."""
    return [sys.executable, "-m", "benchmarks.suite.zygote", "--threads", str(threads)]


def root() -> Path:
    """The folder that `benchmarks` is imported from."""
    return Path(__file__).parents[2]


if __name__ == "__main__":
    main()
