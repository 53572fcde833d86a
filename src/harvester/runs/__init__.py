"""Runs of every kind: begin, end, gates, and decisions about held runs."""
