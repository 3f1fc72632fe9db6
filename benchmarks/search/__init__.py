"""How good a search is after how long. `python -m benchmarks.search --help`."""
