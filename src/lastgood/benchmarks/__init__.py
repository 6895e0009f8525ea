"""Benchmarks that a stranger can run: ratios against raw limits measured in the same run. Needs numpy and numba only."""
