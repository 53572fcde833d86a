"""Runs of every kind: their life from begin to end, their gates, and the decisions about those that are held."""
