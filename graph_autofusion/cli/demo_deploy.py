"""The demo's second process: a deployment that only fetches the plan, checks it and times it.

`python -m graph_autofusion.cli.demo_deploy --service URL --store URL --rows N --output DIR` prints
JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

import graph_autofusion as gaf
from graph_autofusion.cli.demo_model import build, interleaved_us


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service", required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    model, x = build(args.rows)
    with torch.no_grad():
        start = time.perf_counter()
        fast = gaf.optimize(
            model, x, service=args.service, store=args.store, on_miss="error", strict=True
        )
        seconds = time.perf_counter() - start
        error = (fast(x) - model(x)).abs().max().item()
        before_us, after_us = interleaved_us(lambda: model(x), lambda: fast(x))
    files = [args.output / f"optimized_graph{suffix}" for suffix in (".dot", ".svg")]
    pictures = [str(gaf.export_graph(fast, file)) for file in files]
    answer = {
        "optimize_seconds": seconds,
        "before_us": before_us,
        "after_us": after_us,
        "speedup": before_us / after_us,
        "max_error": error,
        "pictures": pictures,
        "report": json.loads(fast.report.to_json()),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
