"""Workloads against their peers, interleaved. `python -m benchmarks.suite --help`."""
