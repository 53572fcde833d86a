"""Benchmarks. They are measured, not asserted, and so are no part of the tests."""
