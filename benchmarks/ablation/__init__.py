"""What each kind of fusion is worth. `python -m benchmarks.ablation --help`."""
