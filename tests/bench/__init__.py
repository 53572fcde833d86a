"""Benchmarks. They measure and do not assert, so they are not a part of the tests."""
